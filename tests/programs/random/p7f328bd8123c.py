"""Once a crash: a tape that no backward sweep reads."""

import numpy as np


def f(p, v):
    for item in v:
        k1 = 0
        while k1 < 3:
            k1 += 1
            p += 1.0
    return p


def ARGS():
    return (1.0, np.array([[[2.0]]]))


WRT = (0,)
