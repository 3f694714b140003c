"""Symmetric rank-k update by row slices: triangular slices and strided columns."""

import numpy as np

FIRST, GOAL = 0.8, 0.3
WRT = (0, 1)


def f(a, c0, alpha, beta):
    c = c0.copy()
    for i in range(a.shape[0]):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += alpha * a[i, k] * a[: i + 1, k]
    return np.sum(c * c)


def args(n=200):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, n)), rng.normal(size=(n, n)), 1.5, 1.2


def small():
    return args(4)
