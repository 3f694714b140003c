"""Random program of profile alias, seed 1.

finds, a statement that may raise is taken for dead: 
"""

import math

import numpy as np


def frozen(x: np.ndarray) -> np.ndarray:
    """A read-only array."""
    x.setflags(write=False)
    return x


def f(b, x):
    k1 = 0
    buf = np.zeros(2)
    for i in range(2):
        buf[i] = min(b[k1 % 2, i], b[i, i - 1]) / (1.0 + abs(min(b[k1 % 2, i], b[i, i - 1])))


def ARGS():
    return (frozen(np.array([[1.974, -1.811], [-1.055, -2.0]])), np.float64(-0.924))


WRT = (1,)
