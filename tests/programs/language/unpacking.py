"""Tuple targets, swaps, starred targets, chained assignment."""
import numpy as np


def at_top(x, y, a):
    x, y = y, x * y
    (p, q), r = (x, y), x + y
    first, *rest = p, q, r, 2.0
    *init, last = a
    u = v = p * q
    v = v * 2.0
    return first * rest[1] + last * init[0] - rest[0] * u + v


def in_for(x, y, a):
    for i in range(4):
        x, y = y, x + 0.5 * y * i
    return x * y


def in_while(x, y, a):
    n = 0
    while n < 3:
        a[0], a[2], x = a[2], a[0] * x, a[1]
        n, y = n + 1, y * x
    return a[0] * y + a[2] * x


def in_branch(x, y, a):
    p, q, r = a
    if p < q:
        p, q = q, p
    if q < r:
        q, r, p = r, p, q
    return p * p * x + q * y + r


def ARGS():
    return 0.7, 1.6, np.array([0.5, 1.2, 2.1])
