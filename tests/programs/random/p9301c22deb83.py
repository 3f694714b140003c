"""Once a wrong gradient."""

import numpy as np


def f(w1):
    v = w1.ravel()
    v[0] = 0
    v1 = w1.T
    return np.sum(w1) + np.sum(v1 * v1)


def ARGS():
    return (np.array([[[1.0, 2.0], [1.0, 0.5]]]),)


WRT = (0,)
