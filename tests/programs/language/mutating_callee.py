"""The user's own functions, undecorated: pure, mutating, with several results."""
import numpy as np


def shift(a, by):
    a += by


def split(x):
    half = x / 2.0
    return half, x - half * half


def at_top(a, x):
    shift(a, x)
    p, q = split(a[0])
    shift(a[1:], p)
    return np.sum(a) * q


def in_for(a, x):
    for i in range(3):
        p, q = split(x)
        shift(a, p * i)
        x = q * a[i]
    return x


def in_while(a, x):
    while a[0] < 2.1:
        shift(a, 0.4 * x)
        a[1] = split(a[0])[1]
    return np.sum(a * a)


def in_branch(a, x):
    if x > 0.0:
        shift(a[:2], x)
    else:
        shift(a, 1.0)
    return np.sum(a * a)


def ARGS():
    return np.array([0.6, 1.2, 0.9]), 0.7
