"""Stores into matrices by two indices and by rows."""
import numpy as np


def at_top(a):
    a[0, 1] = a[1, 0] * a[0, 0]
    a[1][2] = a[0, 1] * 2.0
    a[-1, -1] += a[0][1]
    a[0] = a[1] * a[0]
    return np.sum(a * a)


def in_for(a):
    n, m = a.shape
    for i in range(1, n):
        for j in range(1, m):
            a[i, j] = a[i - 1, j] * a[i, j - 1] + a[i - 1, j - 1]
    return a[n - 1, m - 1] * a[0, 0]


def in_while(a):
    k = 0
    while k < a.shape[1]:
        a[:, k] *= a[0, k]
        a[1, :] -= 0.1 * a[0, :]
        k += 1
    return np.sum(a**3)


def in_branch(a):
    if a[0, 0] > 0.0:
        a[1, :] = a[0, ::-1]
        a[:, 0] = a[:, 1] ** 2
    return np.sum(a * a)


def ARGS():
    return (np.array([[0.8, 1.1, 0.5], [0.9, 0.4, 1.3]]),)
