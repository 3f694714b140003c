"""Reading and writing where a condition holds."""
import numpy as np


def at_top(a, x):
    a[a > 1.0] = x
    big = a[a > 0.65]
    a[a < 0.5] *= 3.0
    return np.sum(big * big) + np.sum(a) * x


def in_for(a, x):
    for i in range(3):
        mask = a < 0.8
        a[mask] = a[mask] * 1.4 + 0.1 * x
    return np.sum(a * a)


def in_while(a, x):
    while np.any(a > 0.5):
        a[a > 0.5] *= 0.6 * x
    return np.sum(a)


def in_branch(a, x):
    if np.all(a > 0.0):
        a[~(a < 1.0)] += x
    return np.sum(a**2)


def ARGS():
    return np.array([0.3, 1.7, 0.6, 0.9, 1.2]), 0.77
