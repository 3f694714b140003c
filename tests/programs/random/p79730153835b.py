"""Once a wrong gradient: stores in a loop through the base of a view that is read after it."""

import numpy as np


def f(a, n):
    v = a[::-1]
    for i in range(n):
        if a[i] > 0.0:
            a[i] = 2.0 * a[i] * a[0]
    return v[0] * v[1] + np.sum(v * v)


def ARGS():
    return (np.array([1.5, -0.5, 2.0]), 3)


WRT = (0,)
