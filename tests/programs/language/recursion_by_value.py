"""Recursion whose depth depends on a value."""


def shrink(x, rate):
    if x < 1.0:
        return x * x
    return rate * shrink(x * 0.6, rate + 0.1)


def f(x, rate):
    return shrink(x, rate) + shrink(2.0 * x, rate)


ARGS = (3.0, 0.9)
