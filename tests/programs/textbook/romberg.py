"""Romberg integration: a triangular table, stopped when two columns agree."""
import numpy as np


def f(a, b, k):
    def g(x):
        return np.exp(-k * x) * np.sqrt(1 + x)

    n = 6
    table = np.zeros((n, n))
    h = b - a
    table[0, 0] = 0.5 * h * (g(a) + g(b))
    for i in range(1, n):
        h /= 2
        points = a + h * np.arange(1, 2**i, 2)
        table[i, 0] = 0.5 * table[i - 1, 0] + h * np.sum(g(points))
        for j in range(1, i + 1):
            table[i, j] = table[i, j - 1] + (table[i, j - 1] - table[i - 1, j - 1]) / (4**j - 1)
        if i > 2 and abs(table[i, i] - table[i - 1, i - 1]) < 1e-7:
            return table[i, i]
    return table[n - 1, n - 1]


ARGS = (0.1, 1.4, 1.3)
