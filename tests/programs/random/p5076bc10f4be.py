"""Once a wrong gradient: the same element loaded twice, the second time as the result."""

import numpy as np


def f(u):
    k = 0
    x = u[k + 1]
    x = u[k + 1]
    return (x,)


def ARGS():
    return (np.array([2.0, 1.0]),)


WRT = (0,)
