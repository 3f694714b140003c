"""ravel and reshape of a transposed array are copies: what is stored into them stays there."""
import numpy as np


def f(a):
    t = a.T
    flat = t.ravel()
    flat[0] = 7.0 * a[0, 1]
    block = t.reshape(2, 3)
    block *= 2.0
    return np.sum(a * a) + np.sum(flat * flat) + np.sum(block)


def ARGS():
    return (np.array([[0.8, 1.2, 0.6], [1.1, 0.7, 0.9]]),)
