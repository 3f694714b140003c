"""dot, @, matmul, outer, inner, vdot, tensordot for every pair of ranks."""
import numpy as np


def at_top(m, v, w):
    s = np.dot(v, v) + v @ v + np.inner(v, w) + np.vdot(w, v)
    s = s + np.sum(np.dot(m, v) * w) + np.sum((v @ m) * w) + np.sum(np.matmul(m, m.T) * m)
    s = s + np.sum(np.outer(v, w) * m) + np.sum(np.dot(m, m) ** 2) + np.tensordot(m, m) + m.dot(v)[1] + np.trace(m @ m)
    return s


def in_for(m, v, w):
    for i in range(3):
        v = m @ v * 0.5 + w
        m = m + 0.1 * np.outer(v, w)
    return v @ w


def in_while(m, v, w):
    while v @ v < 40.0:
        v = m.T @ v + w * 0.2
    return np.dot(v, w)


def in_branch(m, v, w):
    if v @ w > 0.0:
        m = m @ m
        m[1] = m @ v
    return np.sum(m @ w)


def ARGS():
    return np.array([[0.7, 1.2, 0.4], [1.1, 0.3, 0.9], [0.2, 0.8, 0.5]]), np.array([0.9, 1.4, 0.6]), np.array([0.3, 0.2, 1.1])
