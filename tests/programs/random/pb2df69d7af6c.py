"""Once a wrong gradient: a store through the base of a view that is read later."""

import numpy as np


def f(a):
    v = a[::1]
    a[1] = 1.0
    return v


def ARGS():
    return (np.array([1., 1.]),)


WRT = (0,)
