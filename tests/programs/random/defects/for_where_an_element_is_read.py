"""Random program of profile overwrite, seed 0.

finds, = for += where an element is read: 
"""

import math

import numpy as np


TABLE = 1.0


def f(x, b):
    for c in (0,):
        b[0] = np.sum(b[b < 1.0])
    return np.sum(b * b) + x + c + np.sum(TABLE)


def ARGS():
    return (0.0, np.asfortranarray(np.array([[0.308, 1.381, -1.788], [-1.5, -0.5, -1.135], [0.5, 1.026, -0.632]])))


WRT = (1,)
