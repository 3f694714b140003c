"""Random program of profile overwrite, seed 0.

finds, what is stored into an array is taken for inactive: 
"""

import math

import numpy as np


TABLE = np.array([1.53, -1.5, -0.832])


def f(x, b):
    for c in (-1, -1):
        b[-1, 2] = np.sin(np.sum(b[b < 1.0]))
    return np.sum(b * b) + x + c + np.sum(TABLE)


def ARGS():
    return (0.0, np.asfortranarray(np.array([[0.308, 1.381, -1.788], [-1.5, -0.5, -1.135], [0.5, 1.026, -0.632]])))


WRT = (1,)
