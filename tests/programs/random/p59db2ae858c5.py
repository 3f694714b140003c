"""Random program of profile alias, seed 41260563.

refused, NotDifferentiable: 'append' fails for these arguments: TypeError: append() got an unexpecte
"""

import math

import numpy as np


def f(u, a):
    new = u
    new = d = new
    v = u
    if v:
        new = np.append(1.0, a)
    d[:] = 1.0
    return new.sum()


def ARGS():
    return (np.array([1.0]), np.array([[0.5]]))


WRT = (1,)
