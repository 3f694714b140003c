"""Once a needless refusal: a variable of a loop around."""

import numpy as np


def f(u, b):
    for j in range(3):
        for item in u:
            pass
        item += 1.0
    return item


def ARGS():
    return (np.array([1., 2.]), 1.0)


WRT = (0,)
