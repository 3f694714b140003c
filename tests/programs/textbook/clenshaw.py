"""Chebyshev coefficients of a function by sampling, and the sum by Clenshaw's recurrence."""
import math

import numpy as np


def chebyshev_fit(fn, n):
    nodes = np.array([math.cos(math.pi * (k + 0.5) / n) for k in range(n)])
    values = fn(nodes)
    coef = np.empty(n)
    for j in range(n):
        s = 0.0
        for k in range(n):
            s += values[k] * math.cos(math.pi * j * (k + 0.5) / n)
        coef[j] = 2.0 * s / n
    return coef


def clenshaw(coef, x):
    d = dd = 0.0
    for j in range(len(coef) - 1, 0, -1):
        d, dd = 2.0 * x * d - dd + coef[j], d
    return x * d - dd + 0.5 * coef[0]


def f(rate, x):
    coef = chebyshev_fit(lambda t: np.exp(-rate * t) / (1.2 + t), 6)
    return clenshaw(coef, x)


ARGS = (0.8, 0.3)
