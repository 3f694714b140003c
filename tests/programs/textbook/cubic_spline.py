"""Natural cubic spline through points, by the tridiagonal system of second derivatives; evaluated at several places."""
import numpy as np


def second_derivatives(x, y):
    n = len(x)
    u = np.zeros(n)
    y2 = np.zeros(n)
    for i in range(1, n - 1):
        sig = (x[i] - x[i - 1]) / (x[i + 1] - x[i - 1])
        p = sig * y2[i - 1] + 2.0
        y2[i] = (sig - 1.0) / p
        u[i] = (y[i + 1] - y[i]) / (x[i + 1] - x[i]) - (y[i] - y[i - 1]) / (x[i] - x[i - 1])
        u[i] = (6.0 * u[i] / (x[i + 1] - x[i - 1]) - sig * u[i - 1]) / p
    for k in range(n - 2, -1, -1):
        y2[k] = y2[k] * y2[k + 1] + u[k]
    return y2


def evaluate(x, y, y2, xi):
    lo, hi = 0, len(x) - 1
    while hi - lo > 1:
        mid = (hi + lo) // 2
        if x[mid] > xi:
            hi = mid
        else:
            lo = mid
    h = x[hi] - x[lo]
    if h == 0.0:
        raise ValueError("the knots must be distinct")
    a = (x[hi] - xi) / h
    b = (xi - x[lo]) / h
    return a * y[lo] + b * y[hi] + ((a**3 - a) * y2[lo] + (b**3 - b) * y2[hi]) * h**2 / 6.0


def f(x, y, where):
    y2 = second_derivatives(x, y)
    return sum(evaluate(x, y, y2, xi) ** 2 for xi in where)


def ARGS():
    return np.array([0.0, 0.7, 1.5, 2.1, 3.0]), np.array([0.4, 1.2, 0.3, -0.5, 0.9]), np.array([0.35, 1.1, 2.6])
