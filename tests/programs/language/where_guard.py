"""A guarded square root: the branch not taken has no finite derivative and must not matter."""
import numpy as np


def f(a, b):
    safe = np.where(a > 0.0, np.sqrt(a), 0.0)
    return np.sum(safe * b)


def ARGS():
    return np.array([0.9, 0.0, 2.5]), np.array([0.3, 0.2, 1.1])


WRT = ("b",)
