"""Once a wrong gradient: a test of the length of a list that grows afterwards."""

import numpy as np


def f(x):
    xs = [x]
    n = 0
    for i in range(4):
        if len(xs) < 3:
            x = x * xs[-1]
        xs.append(x)
    return x + xs[0]


def ARGS():
    return (1.5,)


WRT = (0,)
