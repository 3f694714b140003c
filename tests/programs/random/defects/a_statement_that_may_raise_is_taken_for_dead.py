"""Random program of profile errors, seed 0.

finds, a statement that may raise is taken for dead: 
"""

import math

import numpy as np


def f(u1):
    z = u1[3]


def ARGS():
    return (np.array([1.0]),)


WRT = (0,)
