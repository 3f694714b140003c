"""Random program of profile views, seed 0.

finds, the else-branch is forgotten: 
"""

import math

import numpy as np


def f(v, k, x):
    v /= 1.0 + abs(v)
    if x != x:
        x = x ** 1
        v[-1, 2] += math.sqrt(np.square(x) * np.square(x) + 0.25)
    b1 = v.copy()
    s = x
    return (v, 0.5 * v.sum() + np.sum(b1) + x, np.roll(v, 1) + (v + x + s))


def ARGS():
    return (np.asfortranarray(np.array([[2.0, -0.5, -0.809], [-0.055, -0.968, -0.5], [-1.377, 1.451, 0.447]])), 0, np.float64(0.138))


WRT = (0, 2)
