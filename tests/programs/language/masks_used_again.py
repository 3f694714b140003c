"""One mask selects for reading, storing and adding; another of the same name selects differently."""
import numpy as np


def at_top(x, w):
    mask = x > 0.5
    y = x[mask]
    x[mask] = y * 2.0
    z = x[mask] * y
    mask = w[0] > x
    x[mask] += w[1]
    return np.sum(z) + np.sum(x[mask] ** 2) + np.sum(w[mask])


def in_for(x, w):
    total = 0.0
    low = w < 2.0
    for k in range(3):
        mask = x > 0.4 * k
        x[mask] = x[mask] * w[mask]
        total += np.sum(x[mask]) + np.sum(x[low])
        mask[0] = False
        total += np.sum(x[mask] ** 2)
    return total


ARGS = (np.array([0.3, 0.8, 1.4, 0.6]), np.array([1.1, 0.7, 2.1, 1.3]))
