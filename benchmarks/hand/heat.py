"""Heat in a plate: linear, so nothing is recorded; the adjoint of a step is a step of the cotangents, as a gather."""

import numpy as np

from benchmarks.hand import by_hand


@by_hand
def step(a, b, c):
    n, m = a.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            b[i, j] = a[i, j] + c * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4.0 * a[i, j])


@by_hand
def hand(u0, c, steps):
    n, m = u0.shape
    u, new = u0.copy(), u0.copy()
    for _ in range(steps):
        step(u, new, c)
        u, new = new, u
    total = 0.0
    for i in range(n):
        for j in range(m):
            total += u[i, j] * u[i, j]
    # cotangents of the inner points have a border of zeros; those of the border itself are summed apart
    inner = np.zeros((n, m))
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            inner[i, j] = 2.0 * u[i, j]
    border = 2.0 * u
    before = np.zeros((n, m))
    for _ in range(steps):
        for j in range(1, m - 1):
            border[0, j] += c * inner[1, j]
            border[n - 1, j] += c * inner[n - 2, j]
        for i in range(1, n - 1):
            border[i, 0] += c * inner[i, 1]
            border[i, m - 1] += c * inner[i, m - 2]
        step(inner, before, c)
        inner, before = before, inner
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            border[i, j] = inner[i, j]
    return total, (border,)
