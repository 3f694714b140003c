"""Lorenz's 1996 model by Runge-Kutta: the stages are recorded, each with a halo, so that no index wraps."""

import numpy as np

from benchmarks.hand import by_hand


@by_hand
def tendency(x, forcing, dx):
    """`x` has a halo of two elements on either side."""
    n = dx.size
    x[0], x[1], x[n + 2], x[n + 3] = x[n], x[n + 1], x[2], x[3]
    for i in range(n):
        dx[i] = (x[i + 3] - x[i]) * x[i + 1] - x[i + 2] + forcing


@by_hand
def adjoint(x, k_bar, x_bar):
    """Set `x_bar`, as a gather; `k_bar` has a halo of one element below and two above."""
    n = x_bar.size
    k_bar[0], k_bar[n + 1], k_bar[n + 2] = k_bar[n], k_bar[1], k_bar[2]
    for i in range(n):
        x_bar[i] = k_bar[i] * x[i] - k_bar[i + 3] * x[i + 3] + k_bar[i + 2] * (x[i + 4] - x[i + 1]) - k_bar[i + 1]


@by_hand
def hand(x0, forcing, dt, steps):
    n = x0.size
    stages = np.empty((steps + 1, 4, n + 4))
    k1, k2, k3, k4 = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    stages[0, 0, 2 : n + 2] = x0
    for t in range(steps):
        x, x2, x3, x4 = stages[t, 0], stages[t, 1], stages[t, 2], stages[t, 3]
        new = stages[t + 1, 0]
        tendency(x, forcing, k1)
        for i in range(n):
            x2[i + 2] = x[i + 2] + 0.5 * dt * k1[i]
        tendency(x2, forcing, k2)
        for i in range(n):
            x3[i + 2] = x[i + 2] + 0.5 * dt * k2[i]
        tendency(x3, forcing, k3)
        for i in range(n):
            x4[i + 2] = x[i + 2] + dt * k3[i]
        tendency(x4, forcing, k4)
        for i in range(n):
            new[i + 2] = x[i + 2] + dt / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i])
    x = stages[steps, 0]
    total = 0.0
    for i in range(n):
        total += x[i + 2] * x[i + 2]
    x_bar = np.empty(n)
    for i in range(n):
        x_bar[i] = 2.0 * x[i + 2]
    forcing_bar = 0.0
    k_bar = np.empty(n + 3)
    s_bar = np.empty(n)
    later = np.empty(n)
    for t in range(steps - 1, -1, -1):
        for i in range(n):
            later[i] = x_bar[i]
            s_bar[i] = 0.0
        for stage in range(3, -1, -1):
            weight = dt / 6.0 if stage == 3 or stage == 0 else dt / 3.0
            ahead = dt if stage == 2 else 0.5 * dt
            for i in range(n):
                k_bar[i + 1] = weight * later[i] + ahead * s_bar[i]
            for i in range(n):
                forcing_bar += k_bar[i + 1]
            adjoint(stages[t, stage], k_bar, s_bar)
            for i in range(n):
                x_bar[i] += s_bar[i]
    return total, (x_bar, forcing_bar)
