"""None and ... inside indices."""
import numpy as np


def at_top(a, b):
    c = a[:, None] * b[None, :]
    d = c[..., 0] + a
    e = c[np.newaxis, ..., 1:]
    return np.sum(c * c) + np.sum(d * a) + np.sum(e**3)


def in_for(a, b):
    m = np.zeros((2, 3, 2))
    for i in range(2):
        m[i, ...] = a[:, None] * b
        m[..., i] += a * i
    return np.sum(m * m)


def in_while(a, b):
    k = 0
    while k < 2:
        a = (a[:, None] + b[None, :] * a[:, None])[..., k]
        k += 1
    return np.sum(a * a)


def in_branch(a, b):
    if b[0] > 0.0:
        m = a[..., np.newaxis] - b
    else:
        m = a[..., np.newaxis] + b
    return np.sum(np.abs(m) ** 1.5)


def ARGS():
    return np.array([0.9, 1.4, 0.5]), np.array([0.7, 1.8])
