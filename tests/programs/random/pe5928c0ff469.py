"""Once a wrong gradient: a store through the base of a view that is read later."""

import numpy as np


def f(a1):
    buf = np.zeros(3)
    buf[0] = np.dot(a1[0], np.arange(4))
    v = buf[::1]
    buf[0] = 0
    return v.sum()


def ARGS():
    return (np.array([[1.0, 2.0, 0.5, 1.0]]),)


WRT = (0,)
