"""Once a crash: a read-only broadcast was added to."""

import numpy as np


def f(v):
    x = v[0]
    v = d = v.copy()
    return x + d.sum()


def ARGS():
    return (np.array([1., 2.]),)


WRT = (0,)
