"""Once a wrong gradient: a store through the base of a view that is a result."""

import numpy as np


def f(p):
    b1 = np.concatenate((np.full(2, p),))
    v2 = b1[::1]
    b1[0] = 1.0
    return (v2,)


def ARGS():
    return (1.5,)


WRT = (0,)
