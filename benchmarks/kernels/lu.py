"""LU factorization without pivoting, by loops in place."""

import numpy as np

FIRST, GOAL = 4.5, 3.0
WRT = (0,)


def f(a0):
    a = a0.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[k, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            for k in range(i):
                a[i, j] -= a[i, k] * a[k, j]
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += a[i, j]
    return total


def args(n=120):
    return (np.random.default_rng(0).normal(size=(n, n)) + n * np.eye(n),)


def small():
    return args(5)
