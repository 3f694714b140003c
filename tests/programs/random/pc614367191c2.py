"""Once a crash: a read-only broadcast was added to."""

import numpy as np


def f(v):
    z = v[0, 0, 0]
    v = out_bar = v.copy()
    return z + np.sum(v)


def ARGS():
    return (np.array([[[1., 2.]]]),)


WRT = (0,)
