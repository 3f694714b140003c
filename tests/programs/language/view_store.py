"""Views are read and stored through; the base sees it."""
import numpy as np


def at_top(a):
    inner = a[1:-1]
    inner *= 2.0
    inner[0] = a[0] * a[3]
    tail = inner[1:]
    tail += a[0]
    a[2] = 5.0 * tail[0]
    return np.sum(inner * inner) + a[2] * tail[-1]


def in_for(a):
    for i in range(2):
        v = a[i : i + 3]
        v += v[0] * a[4]
        v[1] *= v[2]
    return np.sum(a)


def in_while(a):
    left = a[:3]
    right = a[3:]
    k = 0
    while k < 2:
        left[k] = right[0] * left[k + 1]
        right += left[: len(right)]
        k += 1
    return np.sum(a * a)


def in_branch(a):
    if a[0] > 0.0:
        v = a[::2]
    else:
        v = a[1::2]
    v *= v
    return np.sum(a) * v[0]


def ARGS():
    return (np.array([0.8, 1.2, 0.6, 1.1, 0.7, 0.9]),)
