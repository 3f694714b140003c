"""Gauss-Seidel sweeps by loops: a linear recurrence in place."""

import numpy as np

FIRST, GOAL = 1.4, 0.75
WRT = (0,)


def f(a0, sweeps):
    a = a0.copy()
    n = a.shape[0]
    for _ in range(sweeps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = (
                    a[i - 1, j - 1]
                    + a[i - 1, j]
                    + a[i - 1, j + 1]
                    + a[i, j - 1]
                    + a[i, j]
                    + a[i, j + 1]
                    + a[i + 1, j - 1]
                    + a[i + 1, j]
                    + a[i + 1, j + 1]
                ) / 9.0
    return np.sum(a * a)


def args(n=120, sweeps=20):
    return np.random.default_rng(0).uniform(size=(n, n)), sweeps


def small():
    return args(6, 2)
