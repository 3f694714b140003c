"""Once a wrong gradient: a test of a whole array that is overwritten afterwards."""

import numpy as np


def f(w):
    x1 = w[0, 0]
    if np.var(w) <= 0.3:
        x1 = 0.0
    w **= 2
    return 1.0 + x1


def ARGS():
    return (np.array([[1.5, 0.5, 2.0], [1.434, 0.5, 2.0]]),)


WRT = (0,)
