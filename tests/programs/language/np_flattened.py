"""Functions that flatten a matrix where no axis, or None, is given; lists that become arrays."""
import math

import numpy as np


def at_top(m, x):
    rolled = np.roll(m, 1) * m + np.roll(m, -2, None)
    row = np.repeat(m, 2)[:6] * np.take(m, [5, 1, 1, 0, 3, 2]) + np.take(m.T, np.array([4, 2, 0, 1, 1, 3]), None)
    joined = np.append(m, m[0] * x) * np.concatenate((m[:, 1:], m[:, :2], m[:1] * x), axis=None)[:9]
    running = np.cumsum(m) * np.cumsum(m, axis=None) + np.cumprod(m.T)
    return np.sum(rolled**2) + np.sum(row * running) + np.sum(joined)


def in_for(m, x):
    s = 0.0
    for k in range(3):
        weights = np.array([x**j * math.comb(4, j) / math.factorial(k) for j in range(k + 2)])
        s += np.sum(weights) * m[k % 2, k] + math.perm(5, k) * weights[0] * x
    return s


def in_branch(m, x):
    if x > 0.0:
        table = np.array([[v * w + x for w in m[0]] for v in m[1]])
    else:
        table = m[:, :2]
    return np.sum(table * table[::-1])


def ARGS():
    return np.array([[0.73, 1.22, 0.41], [1.14, 0.37, 0.96]]), 1.3
