"""Slices with steps and negative steps, stored and accumulated."""
import numpy as np


def at_top(a, b):
    a[1:4] = b[:3] * 2.0
    a[::2] += b
    a[::-1] *= 1.5
    a[4:1:-1] -= b
    a[:] = a * a
    return np.sum(a * np.arange(6))


def in_for(a, b):
    for i in range(3):
        a[i:] = a[i:] * b[i]
        a[: i + 1] += a[i] * 0.5
    return np.sum(a)


def in_while(a, b):
    n = len(a)
    while n > 1:
        a[: n // 2] = a[n - n // 2 : n] * a[: n // 2]
        n = (n + 1) // 2
    return a[0] * b[0]


def in_branch(a, b):
    if b[0] > 0.0:
        a[-3:] = b
        a[1:-1:2] = 0.0
    else:
        a[:3] = b
    return np.sum(a * a * a)


def ARGS():
    return np.array([0.4, 1.1, 0.9, 1.6, 0.7, 1.2]), np.array([1.5, 0.6, 0.8])
