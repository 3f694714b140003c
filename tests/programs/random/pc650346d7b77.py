"""Once a wrong gradient: two overlapping views, both written."""

import numpy as np


def f(a):
    v = a[1:]
    w = a[:-1]
    v *= 2.0
    w[0] = 0.5
    return np.sum(v * w)


def ARGS():
    return (np.array([1.5, -0.5, 2.0]),)


WRT = (0,)
