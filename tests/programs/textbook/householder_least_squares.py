"""Least squares by Householder reflections, in place."""
import numpy as np


def f(A, b):
    A = A.copy()
    b = b.copy()
    m, n = A.shape
    for k in range(n):
        x = A[k:, k]
        v = x.copy()
        v[0] += np.sign(x[0]) * np.linalg.norm(x)
        v /= np.linalg.norm(v)
        A[k:, k:] -= 2.0 * np.outer(v, v @ A[k:, k:])
        b[k:] -= 2.0 * v * (v @ b[k:])
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - np.dot(A[i, i + 1 : n], x[i + 1 :])) / A[i, i]
    return np.sum(x) + np.sum(b[n:] ** 2)


def ARGS():
    rng = np.random.default_rng(16)
    return rng.normal(size=(5, 3)), rng.normal(size=5)
