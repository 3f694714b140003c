"""Several returns: early, inside loops, in nested loops, in all branches."""
import numpy as np


def at_top(a, x):
    if x < 0.0:
        return -x
    y = x * x
    if y > 100.0:
        return y
    return y * a[0]


def in_for(a, x):
    for i in range(len(a)):
        for j in range(i):
            x = x + a[i] * a[j]
            if x > 2.5:
                return x * a[i]
        x = x * 1.1
    return x


def in_while(a, x):
    k = 0
    while k < len(a):
        x = x * (1.0 + a[k])
        if x > 2.0:
            return x + k
        k += 1
    return -x


def in_branch(a, x):
    if x > 0.5:
        if a[0] > a[1]:
            return x * a[0]
        else:
            x = x + a[1]
            if x > 1.0:
                return x * x * a[2]
    else:
        return a[2]
    return x


def ARGS():
    return np.array([0.3, 0.9, 0.8, 1.1]), 0.7
