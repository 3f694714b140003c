"""LU with row exchanges and forward and back substitution."""
import numpy as np


def solve(a, b):
    a = a.copy()
    b = b.copy()
    n = len(b)
    for k in range(n - 1):
        pivot = k + np.argmax(np.abs(a[k:, k]))
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            b[k], b[pivot] = b[pivot], b[k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k:] -= factor * a[k, k:]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for i in reversed(range(n)):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def f(a, b):
    x = solve(a, b)
    return x @ x + x[0]


def ARGS():
    return np.array([[0.2, 1.1, -0.4], [-0.9, 0.1, 0.5], [0.3, -0.6, 1.4]]), np.array([1.0, 0.3, -0.8])
