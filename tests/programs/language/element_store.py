"""a[i] = e and a[i] += e, with recurrences through the same array."""
import numpy as np


def at_top(a, x):
    a[0] = a[1] * x
    a[2] += a[0] * a[0]
    a[1] *= a[2]
    a[-1] -= x
    a[0] /= a[2]
    return a[0] + a[1] * a[2] + a[-1] ** 2


def in_for(a, x):
    for i in range(1, len(a)):
        a[i] += x * a[i - 1] * a[i]
    for i in range(len(a) - 1):
        a[i] = a[i + 1] * a[i]
    return a[0] * a[1] + a[3]


def in_while(a, x):
    i = 0
    while a[i] < 1.0:
        a[i] = a[i] * a[i] * 3.0 + x
        i = (i + 1) % len(a)
        a[i] -= 0.1
    return a[0] + 2.0 * a[1] + x * a[2]


def in_branch(a, x):
    if a[0] < a[1]:
        a[0] = a[1] * x
    else:
        a[1] = a[0]
    if x > 0.0:
        a[0] *= a[0]
    return a[0] * a[1]


def ARGS():
    return np.array([0.6, 0.8, 0.5, 1.4]), 0.9
