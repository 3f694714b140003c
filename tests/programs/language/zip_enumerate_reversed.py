"""The iteration helpers, combined."""
import numpy as np


def at_top(a, b):
    s = 0.0
    for x, y in zip(a, b):
        s += x * y
    for i, x in enumerate(a):
        s += i * x * x
    for x in reversed(a):
        s = s * x
    for i, (x, y) in enumerate(zip(a, b)):
        s -= x / (y + i)
    for i, x in enumerate(b, start=1):
        s += x**i
    return s


def in_for(a, b):
    s = 0.0
    for k in range(2):
        for i, x in enumerate(b):
            s = s + x * a[i] * k
        for i in reversed(range(1, 3)):
            s = s * a[i] + b[i]
    return s


def in_while(a, b):
    n = 0
    s = 1.0
    while n < 2:
        for x, y in zip(a, reversed(b)):
            s += x * y / s
        n += 1
    return s


def in_branch(a, b):
    s = a[0]
    if s > 0.0:
        for (i, x), y in zip(enumerate(a), b[1:]):
            s = s * y + i * x
    return s


def ARGS():
    return np.array([1.3, 0.4, 0.9]), np.array([0.6, 1.1, 1.7])
