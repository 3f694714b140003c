"""Arrays made anew in an inner loop and read in another: one extent is recorded, the others are not."""

import numpy as np


def f(v, w):
    for _ in range(3):
        for n, last in enumerate(w):
            b = np.full((4, 3), 1.0) + w[0] * n
        for row in b:
            v = row
    return 0.5 * b.sum() + last * last + np.sum(v * v)


ARGS = (np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 1.0, -0.967]))
WRT = (1,)
