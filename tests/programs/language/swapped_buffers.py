"""Two buffers that change places on each trip; one of them is the argument, which the trips read as well."""

import numpy as np


def at_top(a):
    old, new = a, a.copy()
    for _ in range(4):
        new[:] = 0.5 * old + 0.5 * new * a[-1]
        old, new = new, old
    return np.sum(new)


def in_while(a):
    old, other, new = a, a * 2.0, a.copy()
    k = 0
    while k < 4:
        new[:] = old * a[0] + 0.5 * other * new[-1]
        other[1:] = new[:-1] * other[0]
        old, other, new = other, new, old
        if k == 2:
            a[0] = other.sum() * 0.1
        k += 1
    return (old * other).sum() + new.sum()


ARGS = (np.array([0.35, 0.6, -0.2]),)
