"""Random program of profile views, seed 41260384.

O2, split: <w, J v> is not <J^T w, v>
"""

import math

import numpy as np


def f(b):
    v2 = b.T
    v3 = v2.reshape(-1)
    x1 = v3[0:2] @ b[0]
    return x1


def ARGS():
    return (np.array([[2.0, 1.5, 1.0], [1.0, 1.0, 1.0]]).T,)


WRT = (0,)
