"""Random program of profile recompute, seed 0.

finds, an overwritten variable keeps its cotangent: 
"""

import math

import numpy as np


def f(b, y1, m):
    k = 1
    for c1 in (-2.0, 0.75):
        for item in b:
            x = math.tanh(b[k % 3][k % 2][k % 2])
    return np.sum(b * b) + c1 + x + np.sum(item) + y1


def ARGS():
    return (np.array([[[-1.0, 2.0], [-0.461, -1.532]], [[1.0, 0.5], [-1.396, 1.519]], [[1.323, 0.061], [0.795, 1.5]]]), -0.5, 2)


WRT = (0,)
