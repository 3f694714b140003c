"""Once a lost exception: an index out of range in a condition that guards nothing."""

import numpy as np


def f(a, k):
    if a[k] > 0.0:
        pass
    return np.sum(a)


def ARGS():
    return (np.array([1.0, 2.0]), 3)


WRT = (0,)
