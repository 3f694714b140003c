"""Cholesky factorization by loops in place: every operand is final, nothing to record."""

import math

import numpy as np

FIRST, GOAL = 2.0, 1.8
WRT = (0,)


def f(a0):
    a = a0.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = math.sqrt(a[i, i])
    total = 0.0
    for i in range(n):
        for j in range(i + 1):
            total += a[i, j]
    return total


def args(n=120):
    m = np.random.default_rng(0).normal(size=(n, n))
    return (m @ m.T + n * np.eye(n),)


def small():
    return args(5)
