"""Random program of profile calls, seed 41260009.

O3, joint: -3.8684232430310157 instead of -3.8322199393899776 (3.56e+13 units of rounding)
"""

import math

import numpy as np


def y_bar(u):
    x1 = u / 2.0
    x = max(0, x1)
    return x + u + x1


def f(p):
    p = np.where(0, 0, y_bar(p))
    return 1.0 + p


def ARGS():
    return (1.0,)


WRT = (0,)
