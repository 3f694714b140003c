"""Random program of profile overwrite, seed 0.

finds, an overwritten element keeps its cotangent: 
"""

import math

import numpy as np


def f(b):
    b[0] = True
    return b


def ARGS():
    return (np.array([[1.0]]),)


WRT = (0,)
