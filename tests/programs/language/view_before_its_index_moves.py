"""A view is of the part of the array that its index named when it was made, whatever becomes of the index."""

import numpy as np


def f(a, w):
    total = 0.0
    k = 0
    while k < 3:
        first = a[k : k + 2]
        row = a[k]
        k += 1
        p = first * w[0]
        a[k] += row * w[1]
        total += np.sum(p * p)
    return total + np.sum(a)


ARGS = (np.array([0.3, -0.7, 1.2, 0.4]), np.array([0.8, -1.1]))
