"""Random program of profile overwrite, seed 0.

finds, a later term replaces the earlier ones: 
"""

import math

import numpy as np


def f(b):
    return b * b


def ARGS():
    return (np.array([[1.0]]),)


WRT = (0,)
