"""Shapes as arrays and by keyword, and positions of elements from `np.indices`."""

import numpy as np

SHAPE = np.array([2, 3])


def at_top(x):
    a = np.zeros(SHAPE)
    a[0, 1] = x[0]
    b = np.reshape(x, SHAPE) * np.ones(shape=SHAPE) + np.full(SHAPE, x[1])
    c = np.tile(x[:2], np.array([2, 1]))
    return np.sum(a * b) + np.sum(b[1] ** 2) + c[1, 0] * c.ndim + np.full(shape=(2, 3), fill_value=x[4])[1, 2]


def in_branch(x):
    i, j = np.indices((2, 3))
    a = x.reshape(2, 3).copy()
    if x[0] > 0:
        a[(i + j) % 2 == 0] *= x[5]
        a += 0.5 * np.indices(dimensions=(2, 3), dtype=float)[1]
    return np.sum(a**2 * (i + 1))


def ARGS():
    return (np.array([1.3, 0.4, 2.2, -0.7, 0.9, 1.8]),)
