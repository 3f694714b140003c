"""Once a crash: a mask in a loop."""

import numpy as np


def f(b):
    xs = []
    for i1 in range(2):
        xs.append(np.sum(b[b > 1.0]))
    return xs.pop()


def ARGS():
    return (np.array([1., 2.]),)


WRT = (0,)
