"""Squared distances to the nearest of some centres: only that centre has a gradient."""

import math

import numpy as np

from benchmarks.hand import by_hand


@by_hand
def hand(points, centres):
    n, d = points.shape
    bar = np.zeros(centres.shape)
    total = 0.0
    for p in range(n):
        best, nearest = math.inf, 0
        for k in range(centres.shape[0]):
            square = 0.0
            for i in range(d):
                gap = points[p, i] - centres[k, i]
                square += gap * gap
            if square < best:
                best, nearest = square, k
        total += best
        for i in range(d):
            bar[nearest, i] -= 2.0 * (points[p, i] - centres[nearest, i])
    return total, (bar,)
