"""Random program of profile overwrite, seed 0.

finds, a mutated argument is not copied back: 
"""

import math

import numpy as np


def f(b):
    b *= 0


def ARGS():
    return (np.array([[1.0]]),)


WRT = (0,)
