"""NumPy scalars as arguments and as elements; reductions give NumPy scalars."""
import numpy as np


def at_top(x, y):
    z = np.sqrt(x) + np.exp(-y)
    return z * np.sin(x * y)


def in_for(x, y):
    s = np.float64(0.0)
    for i in range(3):
        s += x * y**i
        x = np.tanh(s)
    return s


def in_while(x, y):
    while np.abs(x) > 0.2:
        x = x * np.cos(y)
        y = np.log1p(np.abs(x) + y)
    return x + y


def in_branch(x, y):
    if np.logical_and(x > 0.0, y > 0.0):
        x = np.power(x, y)
    return np.hypot(x, y)


ARGS = (__import__("numpy").float64(1.3), __import__("numpy").float64(0.6))
