"""Random program of profile views, seed 7515.

O3, joint: -0.9192130695780814 instead of -9.687346212769832 (4.78e+15 units of rounding)
"""

import math

import numpy as np


def f(v1):
    v1 = v1[::-1,]
    v2 = v1.reshape(-1)
    v3 = v1
    v3[0] = 0
    v1 = v2.reshape(2, 2)
    return v1.sum()


def ARGS():
    return (np.array([[1.0, 1.5], [1.0, 1.0]])[::-1],)


WRT = (0,)
