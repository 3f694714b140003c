"""A list that grows in a loop and behind it, and is the result: every item has a cotangent of its own."""

import numpy as np


def f(x, y):
    rows = []
    for k in range(len(x)):
        rows.append(x * k)
    rows.append(1.0 * y)
    rows.append(y * y)
    rows.append(y)
    return rows


ARGS = (np.array([0.4, 0.9, 1.3]), np.array([0.7, 1.1, 0.5]))
