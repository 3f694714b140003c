"""Once a wrong value or type: a Python number on one path and a float64 of NumPy on the other, in single precision."""

import numpy as np


def f(a):
    tan = 1.0
    if np.all(0):
        tan = np.cos(3)
    return np.sum(a) + tan


def ARGS():
    return (np.array([1.5], dtype=np.float32),)


WRT = (0,)
