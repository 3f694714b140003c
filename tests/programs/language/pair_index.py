"""Two index arrays at once, and an index array next to a slice."""
import numpy as np


def f(a, rows, cols):
    s = np.sum(a[rows, cols] ** 2)
    a[rows, cols] += 1.5
    b = a[:, cols] * 0.5
    c = a[rows]
    a[1, cols] = b[0]
    return s + np.sum(b * b) + np.sum(c * a[0]) + np.sum(a * a)


def ARGS():
    a = np.array([[0.7, 1.2, 0.4], [1.1, 0.3, 0.9]])
    return a, np.array([0, 1, 1, 0]), np.array([2, 0, 0, 1])
