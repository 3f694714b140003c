"""b = a is one array with two names; rebinding one leaves the other."""
import numpy as np


def at_top(a, x):
    b = a
    b[0] = x * a[1]
    a[1] += b[0]
    b = b * 2.0
    b[2] = 9.0
    return np.sum(a * a) + np.sum(b)


def in_for(a, x):
    for i in range(3):
        b = a
        b[i] *= x
        b = np.sin(b)
        a[i] += b[(i + 1) % 3]
    return np.sum(a)


def in_while(a, x):
    old = a
    new = np.zeros_like(a)
    k = 0
    while k < 3:
        new[:] = old * x
        new[0] += old[2] * old[1]
        old, new = new, old
        k += 1
    return np.sum(old * old) + np.sum(new)


def in_branch(a, x):
    b = np.ones(3)
    if x > 0.0:
        b = a
    b[1] = b[0] * x
    return np.sum(a * b)


def ARGS():
    return np.array([0.8, 1.2, 0.6]), 1.3
