"""Random program of profile views, seed 41260015.

O3, split: -1.07733628772802 instead of 4.320435188319795 (1.79e+15 units of rounding)
"""

import math

import numpy as np


def f(u, b):
    x = 1.0
    b1 = b.copy()
    k = 0
    v1 = u[:-1]
    x, y1 = (1.0, 1.0)
    v4 = v1.T
    v5 = u.T
    v6 = v5.reshape(-1)
    x4 = b[k - 1, k] * np.max(v5)
    v7 = b[::-1]
    k2 = 0
    x6 = x4
    b2 = np.array([1.0 * np.logaddexp(0.5 * int(x6), x) for i1 in range(3)])
    v6[-2:] = np.cos(np.where(b2[1:3] <= y1, v1[..., k2 - 1], b2[-2:]))
    return (np.sum(v1) + 0.5 * b1.sum() + np.sum(b * b) + 0.5 * v4.sum() + 0.5 * b2.sum() + y1, np.sum(v1) + x6 + y1 + np.sum(b * b) + 0.5 * b1.sum() + np.sum(v4), v7)


def ARGS():
    return (np.array([[0.796, -1.235, 0.578], [-0.635, -0.544, 0.137], [1.5, -0.071, 0.071]]).T, np.array([[0.574, -0.747, 1.047, 1.021, -0.558, -0.273], [-0.5, 1.5, -0.864, -0.561, 0.142, -1.418], [-0.413, -1.704, -1.5, 1.0, -1.0, -0.271]])[..., ::2])


WRT = (0,)
