"""A branch that chooses between one thing and the same thing."""
import numpy as np


def f(w, x):
    w = w if np.sum(w[w > x]) <= w[-2] and 2.0 > w[0] else w
    w *= np.cos(w)
    return np.sum(w * w) + x


def ARGS():
    return np.array([1.5, 0.281]), 1.0
