"""Conditions built from array properties, counts of non-zeros, membership of ints, any and all."""
import numpy as np


def f(a, n):
    s = 0.0
    for i in range(len(a)):
        if i in (0, 3) or n in [2, 5]:
            s += a[i]
        elif i not in (1,):
            s -= a[i] * a[i]
    if np.any(a > 1.0) and not np.all(a > 0.5):
        s *= a[1]
    if np.count_nonzero(a > 0.5) == 3 and a.size % 2 == 0:
        s = s + a[2]
    return s * a.shape[0]


def ARGS():
    return np.array([0.9, 1.4, 0.3, 0.7]), 3
