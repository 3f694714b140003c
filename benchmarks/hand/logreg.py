"""Logistic regression: a block of rows is multiplied from both sides while it is in cache."""

import numpy as np

from benchmarks.hand import by_hand


@by_hand
def hand(w, x, y):
    n = x.shape[0]
    w_bar = w.copy()
    total = 0.5 * np.dot(w, w)
    block = 64
    for first in range(0, n, block):
        rows = x[first : first + block]
        z = np.dot(rows, w)
        z_bar = np.empty(z.size)
        for i in range(z.size):
            label = y[first + i]
            e = np.exp(-label * z[i])
            total += np.log1p(e)
            z_bar[i] = -label * e / (1.0 + e)
        w_bar += np.dot(z_bar, rows)
    return total, (w_bar,)
