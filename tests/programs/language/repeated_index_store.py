"""A store through several index arrays may write an element twice; the last write stays."""
import numpy as np


def f(a, cols, b):
    a[:, cols] = b
    a[1, cols] = b[0] * a[0, cols]
    a[cols, 2] = b[1] * a[0, 1]
    a[cols[:2], :] = b[:2, :3] ** 2
    a[cols[1:], cols[:-1]] = b[0, 1:] ** 2
    return np.sum(np.sin(a))


def ARGS():
    rng = np.random.default_rng(3)
    return rng.random((3, 3)), np.array([1, 0, 1, 1]), rng.random((3, 4))
