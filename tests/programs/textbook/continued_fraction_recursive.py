"""Continued fractions until a tolerance, by recursion: the tangent, and the ratio of Bessel functions of a tuple."""


def tangent(x, k, weight):
    if weight < 1e-12:
        return 2.0 * k - 1.0
    return (2.0 * k - 1.0) - x * x / tangent(x, k + 1, weight * x * x / (4.0 * k * k))


def lentz(state, b, level):
    c, d, value = state
    if level > 3 and abs(c * d - 1.0) < 1e-10:
        return c, d, value
    d = 1.0 / (b * level + d)
    c = b * level + 1.0 / c
    return lentz((c, d, value * c * d), b, level + 1)


def f(x, b):
    c, d, value = lentz((b, 0.0, b), b, 1)
    return x / tangent(x, 1, 1.0) + value * 0.3


ARGS = (0.9, 1.3)
