"""Once a crash: slices of growing length that the end of their array cuts short."""

import numpy as np


def f(w):
    w = [np.sum(w[0:i1]) for i1 in range(3)]
    return np.sum(w)


def ARGS():
    return (np.array([1.0]),)


WRT = (0,)
