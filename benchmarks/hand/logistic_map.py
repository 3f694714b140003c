"""The logistic map: the states are recorded."""

import numpy as np

from benchmarks.hand import by_hand


@by_hand
def hand(x0, r, n):
    states = np.empty(n)
    x = x0
    for t in range(n):
        states[t] = x
        x = r * x * (1.0 - x)
    x_bar, r_bar = 1.0, 0.0
    for t in range(n - 1, -1, -1):
        x_old = states[t]
        r_bar += x_bar * x_old * (1.0 - x_old)
        x_bar = x_bar * r * (1.0 - 2.0 * x_old)
    return x, (x_bar, r_bar)
