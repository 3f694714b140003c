"""Two-dimensional DCT by its definition, quantised softly, and back: a little image codec."""
import math

import numpy as np


def dct_matrix(n):
    c = np.empty((n, n))
    for k in range(n):
        for i in range(n):
            c[k, i] = math.sqrt((1 if k == 0 else 2) / n) * math.cos(math.pi * k * (2 * i + 1) / (2 * n))
    return c


def f(block, step):
    c = dct_matrix(block.shape[0])
    coef = c @ block @ c.T
    scaled = coef / step
    rounded = scaled - np.sin(2 * np.pi * scaled) / (2 * np.pi)
    back = c.T @ (rounded * step) @ c
    return np.mean((back - block) ** 2) + 0.01 * np.sum(np.log1p(rounded**2))


def ARGS():
    return np.random.default_rng(15).uniform(size=(3, 3)), 0.37
