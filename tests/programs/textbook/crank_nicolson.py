"""Crank-Nicolson for heat conduction with a matrix solve in each step."""
import numpy as np


def f(u, kappa, dt, steps):
    n = len(u)
    h = 1.0 / (n + 1)
    lap = np.zeros((n, n))
    for i in range(n):
        lap[i, i] = -2.0
        if i > 0:
            lap[i, i - 1] = 1.0
        if i < n - 1:
            lap[i, i + 1] = 1.0
    lap *= kappa / h**2
    left = np.eye(n) - 0.5 * dt * lap
    right = np.eye(n) + 0.5 * dt * lap
    for _ in range(steps):
        u = np.linalg.solve(left, right @ u)
    return np.max(u) + np.sum(u**2)


def ARGS():
    return np.array([0.3, 0.9, 1.4, 0.8, 0.2]), 0.7, 0.01, 4
