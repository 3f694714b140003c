"""A name that starts as an int and becomes a float, and one that starts scalar and becomes an array."""
import numpy as np


def at_top(x):
    total = 0
    total = total + x[0]
    k = 3
    k = k * x[1]
    return total * k


def in_for(x):
    s = 0
    p = 1
    for v in x:
        s = s + v
        p *= v
    return s * p


def in_while(x):
    n = 0
    acc = 1
    while n < 2:
        acc = acc * x[n] + n
        n += 1
    return acc


def in_branch(x):
    y = 0
    if x[0] > 0.0:
        y = x * 2.0
    return np.sum(y)


def ARGS():
    return (np.array([0.9, 1.4]),)
