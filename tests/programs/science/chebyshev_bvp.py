"""Chebyshev collocation for u'' = exp(a x) + b u, u(-1) = u(1) = 0; value at the middle."""
import numpy as np


def cheb(n):
    if n == 0:
        return np.zeros((1, 1)), np.ones(1)
    x = np.cos(np.pi * np.arange(n + 1) / n)
    c = np.hstack([2.0, np.ones(n - 1), 2.0]) * (-1.0) ** np.arange(n + 1)
    X = np.tile(x, (n + 1, 1)).T
    dX = X - X.T
    D = np.outer(c, 1.0 / c) / (dX + np.eye(n + 1))
    D = D - np.diag(D.sum(axis=1))
    return D, x


def f(a, b):
    D, x = cheb(8)
    D2 = (D @ D)[1:-1, 1:-1]
    rhs = np.exp(a * x[1:-1])
    u = np.linalg.solve(D2 - b * np.eye(7), rhs)
    return u[3] + 0.5 * (u**2).sum()


ARGS = (0.7, 1.3)
