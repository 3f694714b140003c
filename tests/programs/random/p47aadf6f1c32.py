"""Random program of profile uniform, seed 14.

refused, BadArgument: the cotangents do not match the value.: the cotangents do not match the value.
"""

import math

import numpy as np


def f(w):
    return 1.0


def ARGS():
    return (np.array(1.0),)


WRT = (0,)
