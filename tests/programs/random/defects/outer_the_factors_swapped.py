"""Random program of profile views, seed 20067.

finds, outer: the factors swapped: 
"""

import math

import numpy as np


def f(v, v1):
    return np.outer(v, v1[1])


def ARGS():
    return (np.array([1.0, 0.5, 0.5]), np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]))


WRT = (1,)
