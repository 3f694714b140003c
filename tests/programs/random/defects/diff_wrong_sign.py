"""Random program of profile views, seed 20096.

finds, diff: wrong sign: 
"""

import math

import numpy as np


def f(a, x, n):
    m = np.ones((3, 3)) <= x
    x1 = x
    a[np.array([-2])] += np.diff(a[0:2])
    a[2::2] += x1 * x1
    v = a.reshape(1, -1)
    a[n % 3] /= x1 * x1 + 1.5
    return np.sum(a * a) + x1 + x + 0.5 * v.sum()


def ARGS():
    return (np.array([0.24, -0.82, -0.427]).T, -2.055, 4)


WRT = (0, 1)
