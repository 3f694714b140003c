"""A five-point stencil by slices between two buffers: linear, nothing to record."""

import numpy as np

FIRST, GOAL = 0.45, 0.26
WRT = (0,)


def f(a0, steps):
    a = a0.copy()
    b = a0.copy()
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return np.sum(a * a)


def args(n=250, steps=100):
    return np.random.default_rng(0).uniform(size=(n, n)), steps


def small():
    return args(7, 3)
