"""Functions passed to functions, chosen from a tuple, returned."""
import math

import numpy as np


def twice(fn, x):
    return fn(fn(x))


def simpson(fn, lo, hi):
    return (hi - lo) / 6.0 * (fn(lo) + 4.0 * fn(0.5 * (lo + hi)) + fn(hi))


def double(v):
    return 2.0 * v


def compose(p, q):
    return lambda v: p(q(v))


def at_top(x, y):
    return twice(math.sin, x) + twice(double, y) + simpson(lambda t: t * t * x, 0.0, y) + compose(double, np.exp)(x)


def in_for(x, y):
    s = 0.0
    for fn in (math.sin, math.exp, double):
        s += fn(x) * y
    return s


def in_while(x, y):
    while x < 3.0:
        x = twice(lambda v: v + y * 0.5, x)
    return simpson(math.cos, x, y)


def in_branch(x, y):
    if x > 0.0:
        return simpson(lambda t: math.exp(-t * t * y), 0.0, x)
    return twice(double, y)


ARGS = (0.8, 1.3)
