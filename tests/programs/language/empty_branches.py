"""Branches in which nothing is computed."""
import numpy as np


def f(v, x):
    for n, item in enumerate(v):
        if np.tanh(item[0]) > 0.5:
            pass
        w = v[::-1]
        w[n, 0] = x if np.any(v > v[1, 0]) else x
    return x * np.sum(v)


def ARGS():
    return np.array([[0.4, 1.2], [0.9, 0.3]]), 1.3
