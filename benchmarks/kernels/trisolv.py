"""Forward substitution, each row times the solution so far; the gradient of the matrix is dense and must be written."""

import numpy as np

FIRST, GOAL = 5.5, 5.4
WRT = (0, 1)


def f(low, b):
    x = np.zeros_like(b)
    for i in range(b.size):
        x[i] = (b[i] - low[i, :i] @ x[:i]) / low[i, i]
    return np.sum(x * x)


def args(n=1000):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, n)) / n + np.eye(n), rng.normal(size=n)


def small():
    return args(6)
