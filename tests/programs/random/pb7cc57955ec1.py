"""Once a crash: a read-only broadcast was added to."""

import numpy as np


def f(w):
    x1 = w[1, 2]
    w = w.copy()
    return w.sum() + x1


def ARGS():
    return (np.array([[1., 2., 3.], [4., 5., 6.]]),)


WRT = (0,)
