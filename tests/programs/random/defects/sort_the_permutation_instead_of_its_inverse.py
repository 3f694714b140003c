"""Random program of profile overwrite, seed 20005.

finds, sort: the permutation instead of its inverse: 
"""

import math

import numpy as np


def f(v):
    return np.sort(v)


def ARGS():
    return (np.array([1.0, 0.1, 2.0, -1.5]),)


WRT = (0,)
