"""Forward substitution, by rows; the adjoint is a substitution backwards, by the same rows."""

import numpy as np

from benchmarks.hand import by_hand


@by_hand
def hand(low, b):
    n = b.size
    x = np.empty(n)
    total = 0.0
    for i in range(n):
        x[i] = (b[i] - np.dot(low[i, :i], x[:i])) / low[i, i]
        total += x[i] * x[i]
    b_bar = 2.0 * x
    low_bar = np.empty((n, n))
    for i in range(n - 1, -1, -1):
        b_bar[i] /= low[i, i]
        g = b_bar[i]
        for j in range(i):
            b_bar[j] -= g * low[i, j]
            low_bar[i, j] = -g * x[j]
        low_bar[i, i] = -g * x[i]
        for j in range(i + 1, n):
            low_bar[i, j] = 0.0
    return total, (low_bar, b_bar)
