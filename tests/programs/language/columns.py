"""Columns and blocks of a matrix."""
import numpy as np


def at_top(a, v):
    a[:, 1] = a[:, 0] * v
    a[:, 2] += a[:, 1]
    a[1:, :2] *= 2.0
    return np.sum(a[:, 2] * v) + np.sum(a[::2, ::-1] ** 2)


def in_for(a, v):
    for j in range(a.shape[1]):
        a[:, j] /= np.sqrt(np.sum(a[:, j] * a[:, j]))
        v = v + a[:, j] * j
    return np.sum(v * v)


def in_while(a, v):
    j = a.shape[1] - 1
    while j > 0:
        a[:, j - 1] += a[:, j] * v
        j -= 1
    return np.sum(a[:, 0])


def in_branch(a, v):
    if a[0, 0] > 0.0:
        a[:, 0], v = v * a[:, 1], a[:, 2] * 1.0
    return np.dot(a[:, 0], v)


def ARGS():
    return np.array([[0.7, 1.2, 0.4], [1.1, 0.3, 0.9], [0.5, 0.8, 1.4]]), np.array([0.6, 1.3, 0.2])
