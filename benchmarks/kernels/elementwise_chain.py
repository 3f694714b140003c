"""Element-wise functions of long vectors, summed: fusion and vector mathematics."""

import numpy as np

FIRST, GOAL = 1.1, 0.3
WRT = (0, 1)


def f(x, y):
    u = np.sin(x) * np.exp(-y * y)
    v = np.tanh(u + x * y)
    return np.sum(u * v + np.sin(v) * y)


def args(n=1_000_000):
    rng = np.random.default_rng(0)
    return rng.normal(size=n), rng.normal(size=n)


def small():
    return args(7)
