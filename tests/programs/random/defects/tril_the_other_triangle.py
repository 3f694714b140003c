"""Random program of profile views, seed 20189.

finds, tril: the other triangle: 
"""

import math

import numpy as np


def f(b):
    return np.tril(b)


def ARGS():
    return (np.array([[1.0, 2.0]]),)


WRT = (0,)
