"""Dynamic time warping distance of two series."""
import numpy as np


def f(a, b):
    n, m = len(a), len(b)
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d = (a[i - 1] - b[j - 1]) ** 2
            cost[i, j] = d + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return np.sqrt(cost[n, m])


def ARGS():
    return np.array([0.1, 0.9, 1.8, 1.1, 0.3]), np.array([0.2, 1.5, 1.7, 0.4])
