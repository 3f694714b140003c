"""Once a lost exception: a range with a step of zero around nothing."""

import numpy as np


def f(x, k):
    for i in range(0, 3, k):
        y = x
    return x * x


def ARGS():
    return (1.5, 0)


WRT = (0,)
