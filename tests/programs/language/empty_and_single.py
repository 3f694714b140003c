"""Arrays of size zero and one, and loops over them."""
import numpy as np


def f(a, one, x):
    s = np.sum(a * x) + np.sum(one)
    for v in a:
        s += v
    for v in one:
        s = s * v
    m = np.zeros((0, 3))
    s += np.sum(m @ np.ones(3))
    b = one[1:]
    b += 2.0
    return s * x + np.sum(one[:, None] * a)


def ARGS():
    return np.zeros(0), np.array([1.4]), 0.8
