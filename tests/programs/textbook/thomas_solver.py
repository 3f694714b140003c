"""The Thomas algorithm for a tridiagonal system, in place."""
import numpy as np


def thomas(a, b, c, d):
    n = len(d)
    for i in range(1, n):
        w = a[i - 1] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    x = np.zeros(n)
    x[-1] = d[-1] / b[-1]
    for i in range(n - 2, -1, -1):
        x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
    return x


def f(a, b, c, d):
    x = thomas(a, b, c, d)
    return np.sum(x**2)


def ARGS():
    return np.array([0.3, 0.5, 0.2]), np.array([2.0, 2.5, 1.9, 2.2]), np.array([0.6, 0.1, 0.7]), np.array([1.0, 0.4, 1.3, 0.8])
