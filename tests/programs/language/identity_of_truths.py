"""`is True` of Python's truths, and of NumPy's, which are never `True`."""

import numpy as np


def forward(n, angle):
    along = n * np.cos(angle)
    if abs(along) > 10.0:
        answer = along > 5.0
    else:
        answer = along > 0.0
    answer = bool(answer)
    if answer is True:
        assert along > -1e-10
    else:
        assert along < 1e-10, "not clear"
    return answer


def f(x, y):
    total = 0.0
    for k in range(len(y)):
        of_numpy = y[k] > x
        answer = bool(of_numpy)
        if answer is True:
            total += x * y[k]
        if of_numpy is True:
            total += 100.0 * x
        if answer is False:
            total += x
        if answer is not False:
            total += x * x * x
    return total * x if forward(x, y[0]) else total


ARGS = (1.5, np.array([1.0, 2.0, 3.0]))
