"""Random program of profile uniform, seed 11.

refused, AliasError: 'w_2' and 'w_1' may share memory here, the first is written and the second is r
"""

import math

import numpy as np


def f(w):
    w = 1.0 * w
    for n, item1 in enumerate(w):
        w[1:] = 1.0
        w = np.negative(w)


def ARGS():
    return (np.array([1.0]),)


WRT = (0,)
