"""Random program of profile views, seed 0.

finds, = for += on the cotangent of an array: 
"""

import math

import numpy as np


def f(v, x):
    v /= abs(v)
    b1 = v.copy()
    s = x
    return (v, 0.5 * v.sum() + np.sum(b1) + x, np.roll(v, 1) + (v + x + s))


def ARGS():
    return (np.asfortranarray(np.array([[2.0, -0.5, -0.809], [-0.055, -0.968, -0.5], [-1.377, 1.451, 0.447]])), np.float64(0.138))


WRT = (0,)
