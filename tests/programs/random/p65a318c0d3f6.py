"""Random program of profile views, seed 987091.

O3, joint: -2.47839859289611 instead of -2.47647525761453 (6.99e+12 units of rounding)
"""

import math

import numpy as np


def f(b):
    b[:] = b[None]
    x2 = b @ b
    return x2


def ARGS():
    return (np.array([1.0, 1.0]),)


WRT = (0,)
