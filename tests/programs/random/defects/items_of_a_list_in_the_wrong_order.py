"""Random program of profile integers, seed 40076.

finds, items of a list in the wrong order: 
"""

import math

import numpy as np


def f(w, v, z, idx):
    for u, v1 in zip(w, w):
        buf = np.empty(3)
        for i in range(3):
            buf[i] = 0.5 * u
        b = np.sin(buf)
    s = 0
    for i1 in range(0):
        s += -1
    for i2 in range(1, len(buf)):
        buf[i2] = np.sin(buf[i2] * buf[0]) + np.abs(v1)
    buf1 = np.empty(3)
    for i3 in range(3):
        buf1[i3] = 0.5 * np.sum(buf[buf > buf[i3 - 1]])
    for i4 in range(3 - 1, 0, -1):
        buf1[i4] = buf1[i4 - 1] / (2.0 + buf1[i4] ** 2)
    xs = [v1, (abs(s) + 0.5) ** (-1)]
    for i6 in range(4):
        xs.append(np.sin(s))
    z = xs[-1] * xs[0]
    for u2, v3 in zip(buf, b):
        pass
    return (z + s + u + np.sum(w * w) + np.sum(buf * buf) + np.sum(buf1), w + (s + z + np.sum(v * v) + 0.5 * buf.sum() + w + np.sum(b)))


def ARGS():
    return (np.array([-0.437]), np.array(-1.313), -1.596, np.array([-1, 1, -1]))


WRT = (0, 1, 2)
