"""Modified Gram-Schmidt by column slices in place: strided columns, each overwritten many times."""

import numpy as np

FIRST, GOAL = 2.0, 0.4
WRT = (0,)


def f(a0):
    a = a0.copy()
    m, n = a.shape
    q = np.zeros((m, n))
    r = np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.sqrt(np.sum(a[:, k] * a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.sum(q[:, k] * a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return np.sum(r * r * r) + np.sum(q)


def args(m=120, n=100):
    return (np.random.default_rng(0).normal(size=(m, n)),)


def small():
    return args(5, 4)
