"""Random program of profile calls, seed 12.

refused, NotDifferentiable: 'array' fails for these arguments: TypeError: a number is not iterable.:
"""

import math

import numpy as np


def f(z):
    xs = []
    for i2 in range(1):
        xs.append(z)
    x4 = np.sum(xs)
    return x4


def ARGS():
    return (1.0,)


WRT = (0,)
