"""sum, mean, prod, max, min, var, std with axis and keepdims, as functions and methods."""
import numpy as np


def at_top(m):
    s = np.sum(m, axis=0) * np.mean(m, axis=0) + np.prod(m, axis=0) + np.max(m, axis=0) - np.min(m, axis=0)
    t = m.sum(axis=1, keepdims=True) * m.mean(axis=-1, keepdims=True) + m.max(axis=1, keepdims=True)
    u = np.var(m, axis=1) + np.std(m, axis=1, ddof=1) + m.prod(axis=1) + np.amin(m, axis=(1,))
    return np.sum(s) + np.sum(t * m) + np.sum(u) + np.mean(m) * np.prod(m) + m.max() * m.min() + np.std(m) + m.var()


def in_for(m):
    for i in range(2):
        m = m / np.sum(m, axis=i, keepdims=True)
        m = m - np.mean(m) * 0.1
    return np.sum(m**2)


def in_while(m):
    while np.sum(m) > 3.0:
        m = m * 0.8 - 0.1 * np.min(m, axis=1, keepdims=True)
    return np.prod(m + 1.0)


def in_branch(m):
    if np.max(m) > 1.0:
        m = np.exp(m - np.max(m, axis=1, keepdims=True))
        m = m / m.sum(axis=1)[:, None]
    return -np.sum(np.log(m[:, 0]))


def ARGS():
    return (np.array([[0.7, 1.2, 0.4], [1.1, 0.3, 0.9]]),)
