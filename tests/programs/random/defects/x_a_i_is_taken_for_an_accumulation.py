"""Random program of profile uniform, seed 40001.

finds, x - a[i] is taken for an accumulation: 
"""

import math

import numpy as np


def helper(a, a1):
    x = np.sum(0.5 * np.sign(a))


def f(y, idx, a2):
    b = y + a2
    b[0, 1::2] += 0.5 * np.sign(a2[..., -2])
    b = (y + b) * (y - y)
    y = y
    b = -np.minimum(b, b[0, 0])
    y = y
    k = 3 % 4
    a2[:0:-1, -2:] += y - np.ones((0, 2)) @ np.ones((2, 2))
    b[k % 1, k % 2] = (y + y) * (b[-1, -2] if k + 1 != 0 else y)
    b[k % 1, k % 2] += 0.5 * math.floor(b.min())
    a2[k % 1] = y - a2[k % 1]
    x2 = y
    y = 0.125 * b[k % 1, 1]
    x3 = b[k % 1, k % 2]


def ARGS():
    return (-0.086, np.array([-2, 0, -2]), np.array([[0.024, -1.589]])[::-1])


WRT = (0, 2)
