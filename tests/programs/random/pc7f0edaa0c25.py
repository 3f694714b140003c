"""Once a wrong value or type: an element loaded again after a store in a branch."""

import numpy as np


def f(v, y):
    first = v[-1]
    v[0] = y + v[-1]
    w = v[::-1]
    if y < 3.0:
        x = w[1] * first
        w[1] = x * y
        y = w[1] * w[1]
    return y + np.sum(v)


def ARGS():
    return (np.array([1.5, 0.192]), 0.7)


WRT = (0, 1)
