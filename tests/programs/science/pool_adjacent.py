"""Isotonic regression: pool adjacent violators with a stack of blocks."""
import numpy as np


def pava(y, w):
    blocks = []
    for k in range(len(y)):
        value, weight, count = y[k], w[k], 1
        while blocks and blocks[-1][0] > value:
            v, u, c = blocks.pop()
            value = (value * weight + v * u) / (weight + u)
            weight += u
            count += c
        blocks.append((value, weight, count))
    fit = np.empty_like(y)
    at = 0
    for value, _, count in blocks:
        fit[at:at + count] = value
        at += count
    return fit


def f(y, w):
    fit = pava(y, w)
    return np.sum(w * (y - fit) ** 2) + fit[2] * fit[-1]


ARGS = (np.array([1.0, 3.0, 2.0, 2.6, 2.1, 4.0, 3.5]), np.array([1.0, 0.5, 2.0, 1.5, 1.0, 0.7, 1.1]))
