"""triu, tril, diag, trace, cumsum, cumprod, diff, sort, argsort, searchsorted."""
import numpy as np


def at_top(m, a):
    s = np.sum(np.triu(m) * np.tril(m, -1).T) + np.sum(np.diag(m) * a) + np.trace(m) ** 2 + np.sum(np.triu(m, k=1))
    s = s + np.sum(np.cumsum(a) ** 2) + np.sum(np.cumprod(a)) + np.sum(np.diff(a) ** 2) + np.sum(m.cumsum(axis=1) ** 2)
    order = np.argsort(a)
    k = np.searchsorted(np.sort(a), 1.0)
    return s + np.sum(np.sort(a) * np.arange(3)) + a[order][0] * m[k, 0] + a[np.argmax(a)] * a[np.argmin(a)]


def in_for(m, a):
    for i in range(2):
        a = np.cumsum(a) * np.diag(m, 0)
    return np.sum(a)


def in_while(m, a):
    while a[-1] < 20.0:
        a = np.sort(a * np.cumprod(1.0 + a))
    return a[0] + 0.1 * a[2]


def in_branch(m, a):
    if np.argmax(a) == 1:
        m = np.tril(m) @ np.triu(m).T
    return np.sum(m)


def ARGS():
    return np.array([[0.7, 1.2, 0.4], [1.1, 0.3, 0.9], [0.2, 0.8, 0.5]]), np.array([0.9, 1.4, 0.6])
