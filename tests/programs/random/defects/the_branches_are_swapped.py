"""Random program of profile alias, seed 0.

finds, the branches are swapped: 
"""

import math

import numpy as np


SCALE = 0.0
TABLE = np.array([1.0, 1.0, 1.0])


def f(y):
    if 1.0 < y <= 1.0:
        y = max(TABLE[2], y, 0.5)
    return np.sum(TABLE * TABLE) + SCALE + y


def ARGS():
    return (-1.275,)


WRT = (0,)
