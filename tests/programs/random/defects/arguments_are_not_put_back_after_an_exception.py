"""Random program of profile errors, seed 40166.

finds, arguments are not put back after an exception: 
"""

import math

import numpy as np


def f(v, b):
    v += 1.0
    z = 1.0(3, 7)


def ARGS():
    return (np.array([1.0]), np.array([[[2.0]]]))


WRT = (1,)
