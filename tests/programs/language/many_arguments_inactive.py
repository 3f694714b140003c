"""Integer arrays, masks and counts next to what is differentiated."""
import numpy as np


def f(a, idx, mask, n, weights):
    s = 0.0
    for k in range(n):
        j = idx[k]
        if mask[k]:
            s += a[j] * weights[k]
        else:
            s -= a[j] ** 2
    return s * idx.sum()


def ARGS():
    return np.array([0.9, 1.4, 0.6]), np.array([2, 0, 1, 2]), np.array([True, False, True, True]), 4, np.array([1, 2, 3, 4])


WRT = ("a",)
