"""Residuals of an autoregression with moving average, whose residuals are all that is recorded."""

import numpy as np

from benchmarks.hand import by_hand


@by_hand
def hand(phi, theta, y):
    n = y.size
    e = np.empty(n)
    last, total = 0.0, 0.0
    for t in range(2, n):
        last = y[t] - phi[0] * y[t - 1] - phi[1] * y[t - 2] - theta * last
        e[t] = last
        total += last * last
    phi0, phi1, theta_bar, e_bar = 0.0, 0.0, 0.0, 0.0
    for t in range(n - 1, 1, -1):
        e_bar = 2.0 * e[t] - theta * e_bar
        phi0 -= e_bar * y[t - 1]
        phi1 -= e_bar * y[t - 2]
        if t > 2:
            theta_bar -= e_bar * e[t - 1]
    return total, (np.array([phi0, phi1]), theta_bar)
