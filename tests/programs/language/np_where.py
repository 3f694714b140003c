"""Selection: where with arrays and scalars, clip with bounds that are arrays, nan_to_num."""
import numpy as np


def at_top(a, b):
    c = np.where(a > b, a * a, b)
    d = np.where(a > 0.5, a, 0.0) + np.where(b > 0.5, 1.0, b)
    e = np.clip(a, b * 0.5, None) + a.clip(max=1.1)
    f = np.where((a > 0.2) & (b < 1.0) | ~(a < 2.0), np.sin(a), b)
    return np.sum(c * d + e * f)


def in_for(a, b):
    for i in range(2):
        a = np.where(a < 1.0, a * 1.4, b)
        a[i] = a[i] if a[i] > b[i] else b[i] * a[i]
    return np.sum(a * a)


def in_while(a, b):
    while np.any(a < 2.0):
        a = np.where(a < 2.0, a * 1.7 + b, a)
    return np.sum(a)


def in_branch(a, b):
    if a[0] < 1.0:
        b = np.where(b > a, np.sqrt(np.where(b > a, b - a, 1.0)), a)
    return np.sum(b)


def ARGS():
    return np.array([0.31, 0.83, 1.52]), np.array([1.21, 0.42, 0.93])
