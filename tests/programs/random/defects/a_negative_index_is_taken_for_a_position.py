"""Random program of profile overwrite, seed 0.

finds, a negative index is taken for a position: 
"""

import math

import numpy as np


SCALE = -0.028
TABLE = np.array([1.53, -1.5, -0.832])


def f(x, b):
    x = np.sum(TABLE[2:2 + 2])
    x = SCALE
    b *= 0.5 + np.tanh(-x)
    x **= 2
    for c in (-1, -1):
        b[-1, 2] = np.sin(np.sum(b[b < 1.0]))
        x = SCALE / (1.0 + abs(x)) / (1.0 + abs(SCALE / (1.0 + abs(x))))
    x += x
    return np.sum(b * b) + x + c + np.sum(TABLE)


def ARGS():
    return (0.0, np.asfortranarray(np.array([[0.308, 1.381, -1.788], [-1.5, -0.5, -1.135], [0.5, 1.026, -0.632]])))


WRT = (1,)
