"""Recursive least squares in square-root form: rank-one updates and downdates of a Cholesky factor."""
import math
import numpy as np


def update(L, x, sign=+1):
    n = x.size
    x = x.copy()
    for k in range(n):
        r = math.sqrt(L[k, k] ** 2 + sign * x[k] ** 2)
        c, s = r / L[k, k], x[k] / L[k, k]
        L[k, k] = r
        if k + 1 < n:
            L[k + 1:, k] = (L[k + 1:, k] + sign * s * x[k + 1:]) / c
            x[k + 1:] = c * x[k + 1:] - s * L[k + 1:, k]


def f(rows, targets, ridge):
    n = rows.shape[1]
    L = math.sqrt(ridge) * np.eye(n)
    rhs = np.zeros(n)
    for row, t in zip(rows, targets):
        update(L, row)
        rhs += t * row
    update(L, 0.5 * rows[0], sign=-1)
    z = np.zeros(n)
    for i in range(n):
        z[i] = (rhs[i] - L[i, :i] @ z[:i]) / L[i, i]
    beta = np.zeros(n)
    for i in reversed(range(n)):
        beta[i] = (z[i] - L[i + 1:, i] @ beta[i + 1:]) / L[i, i]
    return beta @ beta + math.log(L[n - 1, n - 1])


ARGS = (np.array([[1.0, 0.2, 0.5], [0.3, 1.0, -0.4], [0.8, -0.6, 1.2], [0.1, 0.9, 0.7]]), np.array([1.0, 0.4, -0.3, 0.8]), 0.7)
