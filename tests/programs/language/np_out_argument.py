"""Results written into a given array with out=."""
import numpy as np


def f(a, b):
    c = np.empty_like(a)
    np.multiply(a, b, out=c)
    np.add(c, a, out=a)
    np.exp(-a, out=c)
    return np.sum(a * c)


def ARGS():
    return np.array([0.9, 1.4, 0.6]), np.array([0.3, 0.2, 1.1])
