"""Derivatives with respect to single ones of `*args`, counted as the call gives them."""

import numpy as np


def f(x, a, *matrices):
    product = np.identity(2) * a
    for k, matrix in enumerate(matrices):
        product = product @ matrix / x ** (2 * k + 2)
    return product


ARGS = (1.3, 0.5, np.array([[0.2, 0.7], [1.1, -0.4]]), np.array([[0.3, 0.1], [0.5, 0.9]]))
WRT = (0, 2, 3)
