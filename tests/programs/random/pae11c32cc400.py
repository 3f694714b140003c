"""Random program of profile errors, seed 13.

O12, split no exception: OverflowError('math range error') expected, returned np.float64(4.034976590
"""

import math

import numpy as np


def f(y, y1):
    z = math.exp(1000.0)
    return y


def ARGS():
    return (1.5, 1.0)


WRT = (1,)
