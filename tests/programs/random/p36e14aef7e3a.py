"""Random program of profile alias, seed 17111.

crash, split UnboundLocalError generated text
"""

import math

import numpy as np


def f(v, z, w):
    if np.all(1.0):
        for i in range(2):
            v[0] = 0
    b = w + 1.5
    for u1, v1 in zip(b, b):
        c = w
    return (np.sum(c) + 1.0,)


def ARGS():
    return (np.array([[-2.0, 1.801, -0.313], [1.985, 0.974, 0.832], [1.0, 1.194, -1.0]]), 1.81, np.array([-0.5, 0.415, 0.04]))


WRT = (2,)
