"""Defaults, keywords, keyword-only parameters and *args in calls to user functions."""


def affine(x, slope=2.0, *, offset=0.5):
    return x * slope + offset


def total(first, *others, weight=1.0):
    s = first
    for value in others:
        s = s + weight * value * value
    return s


def at_top(x, y):
    return affine(x) + affine(x, y) * affine(y, offset=x) + affine(slope=x, x=y)


def in_for(x, y):
    s = 0.0
    for i in range(3):
        s += affine(s, offset=x * i) * y
    return s


def in_while(x, y):
    while x < 6.0:
        x = total(x, y, 0.5, weight=0.6)
    return x


def in_branch(x, y):
    pair = (x, y)
    if x > 0.0:
        return total(*pair) * total(x, weight=y)
    return total(1.0, *pair)


ARGS = (0.7, 1.2)
