"""Written program: a branch appends to the list, so that its length is not known.

finds, items of a list in the wrong order
"""

import math

import numpy as np


def f(x, v):
    xs = [math.sin(x), v[0] * v[1]]
    for i in range(3):
        if v[i] > 0.0:
            xs.append(xs[-1] * v[i])
    return 2.0 * xs[0] + xs[1] ** 2 + xs[-1]


def ARGS():
    return (0.7, np.array([0.437, -1.313, 0.9]))


WRT = (0, 1)
