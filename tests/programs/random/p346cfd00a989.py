"""Random program of profile overwrite, seed 91112.

O1, joint value: result: float64 instead of float (np.float64(4.0), 4.0)
"""

import math

import numpy as np


def f(n, u):
    p = max(u[n], 1.0, 0.5)
    return p


def ARGS():
    return (3, np.array([1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 0.0])[..., ::2])


WRT = (1,)
