"""Once a crash: a slice that the end of its array cuts short."""

import numpy as np


def f(w):
    xs = []
    for i1 in range(2):
        xs.append(np.sum(w[0:2]))
    return xs[0]


def ARGS():
    return (np.array([1.5]),)


WRT = (0,)
