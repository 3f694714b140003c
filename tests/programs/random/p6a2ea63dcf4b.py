"""Once a crash: a tape that grows and is not read."""

import numpy as np


def f(q):
    k1 = 0
    while 1.0 < 1.0 * q <= 1.0:
        k1 = 1
        q -= 1.0
    x2 = np.arange(4)[k1 + 1] * q ** 2
    return x2 + q


def ARGS():
    return (-0.334,)


WRT = (0,)
