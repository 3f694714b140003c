"""Random program of profile views, seed 0.

finds, roll: in the same direction: 
"""

import math

import numpy as np


def f(v, x):
    b1 = 1.0
    s = 1.0
    return np.roll(v, 1) + 1.0


def ARGS():
    return (np.asfortranarray(np.array([[2.0, -0.5, -0.809], [-0.055, -0.968, -0.5], [-1.377, 1.451, 0.447]])), np.float64(0.138))


WRT = (0,)
