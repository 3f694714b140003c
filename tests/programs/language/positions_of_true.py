"""Where a mask holds: `np.nonzero`, `np.where` with one argument and `np.argwhere`, of one to three axes."""

import numpy as np


def at_top(x):
    i = np.nonzero(x > 0)[0]
    m = np.outer(x, x)
    j, k = np.where(m > 0.5)
    return np.sum(x[i] ** 2) * i[-1] + np.sum(m[j, k] * (j + 2 * k))


def in_for(x):
    m = np.outer(x, x)
    total = 0.0
    for a, b in np.argwhere(m > 0.5):
        total += m[a, b] * x[a]
    return total


def in_branch(x):
    m = np.reshape(np.concatenate([x, x * 2]), (2, 2, 2))
    i, j, k = (m > 1).nonzero()
    if len(np.where(x > 5)[0]) == 0:
        return np.sum(m[i, j, k] * i) + len(j) * x[0]
    return x[1]


def ARGS():
    return (np.array([1.3, 0.4, 2.2, -0.7]),)
