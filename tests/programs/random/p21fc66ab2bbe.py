"""Once a wrong gradient: a store through another name of the base of a view."""

import numpy as np


def f(b, z):
    v = b
    v1 = v[::1]
    v[0] = z
    return v1.sum()


def ARGS():
    return (np.array([[1.0]]), 1.0)


WRT = (1,)
