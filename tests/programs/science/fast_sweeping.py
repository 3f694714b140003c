"""Eikonal equation by fast sweeping; travel times through a slowness map."""
import numpy as np


def solve_cell(a, b, sh):
    if a > b:
        a, b = b, a
    if b - a >= sh:
        return a + sh
    return 0.5 * (a + b + np.sqrt(2.0 * sh * sh - (a - b) ** 2))


def f(slowness):
    n, m = slowness.shape
    h = 0.1
    T = np.full((n, m), 1e3)
    T[0, 0] = 0.0
    sweeps = [(range(n), range(m)), (range(n - 1, -1, -1), range(m)), (range(n), range(m - 1, -1, -1)),
              (range(n - 1, -1, -1), range(m - 1, -1, -1))]
    for _ in range(2):
        for rows, cols in sweeps:
            for i in rows:
                for j in cols:
                    if i == 0 and j == 0:
                        continue
                    a = min(T[i - 1, j] if i > 0 else 1e3, T[i + 1, j] if i < n - 1 else 1e3)
                    b = min(T[i, j - 1] if j > 0 else 1e3, T[i, j + 1] if j < m - 1 else 1e3)
                    new = solve_cell(a, b, slowness[i, j] * h)
                    if new < T[i, j]:
                        T[i, j] = new
    return T[-1, -1] + (T[2:4, 1] ** 2).sum()


ARGS = (np.array([[1.0, 1.2, 0.8, 1.1], [0.9, 3.0, 1.3, 1.0], [1.1, 2.5, 0.7, 1.4], [1.0, 1.05, 0.95, 1.2]]),)
