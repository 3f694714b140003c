"""Once a wrong value or type: an element that was loaded before a loop stored into it."""

import numpy as np


def f(a, y):
    t = a[0]
    for j in range(2):
        a[j] = a[j] + y
    a[0] = t + y
    return a[0] * a[1]


def ARGS():
    return (np.array([1.5, 0.192, 1.0]), 0.7)


WRT = (0, 1)
