"""Lagrange interpolation and Neville's tableau give the same value."""
import numpy as np


def lagrange(x, y, t):
    total = 0.0
    for i in range(len(x)):
        basis = 1.0
        for j in range(len(x)):
            if j != i:
                basis *= (t - x[j]) / (x[i] - x[j])
        total += y[i] * basis
    return total


def neville(x, y, t):
    p = y.copy()
    n = len(x)
    for level in range(1, n):
        for i in range(n - level):
            p[i] = ((x[i + level] - t) * p[i] + (t - x[i]) * p[i + 1]) / (x[i + level] - x[i])
    return p[0]


def f(x, y, t):
    return lagrange(x, y, t) + neville(x, y, t) ** 2


def ARGS():
    return np.array([0.0, 0.6, 1.5, 2.2]), np.array([1.0, 1.8, 0.7, 1.3]), 1.05
