"""Numbers between the elements of arrays, between an array and a number, and few of them."""
import numpy as np


def f(a, b, n):
    m = np.linspace(a, b, n)
    half = np.linspace(a, b[0], 4, endpoint=False)
    one = np.linspace(b, a, 1)
    return np.sum(m * m) + np.sum(half[:, 1] * half[:, 0] ** 2) + np.sum(one**2)


ARGS = (np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, -1.0]), 5)
