"""Andrew's monotone chain: area and perimeter of a hull."""
import math
import numpy as np


def cross(o, a, b):
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def hull(points):
    order = sorted(range(len(points)), key=lambda k: (points[k, 0], points[k, 1]))
    lower, upper = [], []
    for k in order:
        while len(lower) >= 2 and cross(points[lower[-2]], points[lower[-1]], points[k]) <= 0:
            lower.pop()
        lower.append(k)
    for k in reversed(order):
        while len(upper) >= 2 and cross(points[upper[-2]], points[upper[-1]], points[k]) <= 0:
            upper.pop()
        upper.append(k)
    return lower[:-1] + upper[:-1]


def f(points):
    ring = hull(points)
    area, length = 0.0, 0.0
    for i, k in enumerate(ring):
        m = ring[(i + 1) % len(ring)]
        area += points[k, 0] * points[m, 1] - points[m, 0] * points[k, 1]
        length += math.hypot(*(points[m] - points[k]))
    return 0.5 * area + 0.1 * length


ARGS = (np.array([[0.0, 0.1], [1.0, 0.2], [0.5, 0.5], [1.2, 1.1], [0.2, 1.3], [0.6, 0.9], [-0.3, 0.7], [0.9, 0.6]]),)
