"""Recursive functions that are defined inside: they read variables, arrays, options and structures around them."""
import math
from collections import namedtuple

import numpy as np

Point = namedtuple("Point", "x y")
RATE = 0.3


def at_top(k, a):
    table = a * a

    def walk(x, left, order="up"):
        if x > 3.0:
            return x * table[1]
        if order == "up":
            return left * walk(x + k, left * 0.9, "down")
        return walk(x * 1.5 + table[0], left, order="up") + k

    return walk(1.0, k)


def in_for(k, a):
    total = 0.0
    for j in range(len(a)):
        scale = a[j]

        def halve(x):
            if x < 0.1:
                return x * scale
            return halve(0.5 * x) + 0.01 * k

        total += halve(k * (j + 1))
    return total


def in_while(k, a):
    def fall(point, options):
        if point.y < 0.0:
            return point, options["gain"] * point.x
        return fall(Point(point.x + k, point.y - RATE * point.x), options)

    x = k
    while x < 2.0:
        end, gain = fall(Point(x, 2.0), {"gain": a[1], "name": "fall"})
        x = x + 0.4 + 0.01 * math.sin(end.y * gain)
    return x


def in_branch(k, a):
    shrink = lambda v: v if np.sum(v * v) < 1e-2 else 0.7 * shrink(v * k)
    if k < 1.0:
        y = shrink(a)
    else:
        y = a
    return np.sum(y * a)


ARGS = (0.6, np.array([0.5, 1.2, 0.8]))
