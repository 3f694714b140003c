"""Random program of profile alias, seed 0.

finds, sums of a block are finished outside of it: 
"""

import math

import numpy as np


SCALE = 0.0
TABLE = np.array([1.0, 1.0, 1.0])


def f(y):
    if 1.0 < y <= 1.0:
        pass
    else:
        y = 1.0
    return np.sum(TABLE * TABLE) + SCALE + y


def ARGS():
    return (-1.275,)


WRT = (0,)
