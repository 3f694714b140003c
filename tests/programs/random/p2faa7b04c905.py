"""Random program of profile calls, seed 20082.

O1, joint value: result: float instead of float64 (a list of Python numbers that takes a NumPy float
"""

import math

import numpy as np


def f(b, z):
    xs = []
    for i in range(2):
        xs.append(0.5 * z)
    xs[0] = b[0]
    return sum(xs)


def ARGS():
    return (np.array([1.5, -0.5]), 2.0)


WRT = (0, 1)
