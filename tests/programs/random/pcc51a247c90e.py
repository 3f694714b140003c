"""Random program of profile alias, seed 61260076.

O3, joint: 2.5436641779359612 instead of 2.5392391789864766 (1.56e+13 units of rounding)
"""

import math

import numpy as np


SCALE = -0.771
TABLE = np.array([0.777, -1.5, -0.933])


def f(v, a):
    for u, v1 in zip(v, v):
        v = v if a[-1][0] < np.sum(a) <= u else v
        k = 0
        while not True and k < 4:
            k += 1
            x = math.tanh(np.divmod(a[k % 2, 1], a[k % 2, 1] * a[k % 2, 1] + 1.5)[0] * 0.5 / (2.0 + np.sin(-SCALE)))
        v[0] = np.tanh(TABLE[2])
        v = v
    c = v
    a = d = a
    new = d.copy()
    for i in range(4):
        new[:] = 0.5 * d + 0.5 * new * a[-1, -1]
        d, new = (new, d)
    x1 = c[-1] * a[k % 2, k % 2]
    v2 = c[::-1]
    c[-1] = u
    x1 = np.sin(x1) + x1 * np.sum(v2)
    s = 0
    for i1 in range(2):
        s += v2[1]
    new1 = 0.5 * v2
    for i2 in range(1):
        new1[:] = 0.5 * v2 + 0.5 * new1 * -2.0
        v2, new1 = (new1, v2)
    new[-1][k % 2], new[k % 2, -2] = (new[k % 2, -2], new[-1][k % 2])
    new2 = d.copy()
    for i3 in range(4):
        new2[:] = 0.5 * d + 0.5 * new2 * new1[k % 2]
        old2 = d
        d = new2
        new2 = old2
    u = v[k % 2]
    new1, v = (v, new1)
    return s + u + np.sum(new1) + v1 + 0.5 * v2.sum() + np.sum(new2 * new2)


def ARGS():
    return (np.array([0.573, 0.5]), np.array([[-0.899, 1.939], [1.149, -0.401]]))


WRT = (0, 1)
