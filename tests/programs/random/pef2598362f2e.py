"""Random program of profile overwrite, seed 11.

O2, joint: <w, J v> is not <J^T w, v>
"""

import math

import numpy as np


def f(y):
    y = y / 0.75
    return y


def ARGS():
    return (1.0,)


WRT = (0,)
