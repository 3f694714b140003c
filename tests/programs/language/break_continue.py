"""break and continue, conditional, in nested loops."""
import numpy as np


def at_top(a, x):
    s = 0.0
    for i in range(len(a)):
        if a[i] < 0.0:
            continue
        s += a[i] * x
        if s > 3.0:
            break
        s = s * 1.1
    return s


def in_for(a, x):
    s = 0.0
    for i in range(len(a)):
        for j in range(len(a)):
            if j == i:
                continue
            if a[j] < -0.7:
                break
            s += a[i] * a[j] * x
        if s < -5.0:
            break
    return s


def in_while(a, x):
    i = 0
    while True:
        i += 1
        if i >= len(a):
            break
        if a[i] < 0.0:
            x = x * 1.1
            continue
        x = x + a[i] * a[i]
    return x


def in_branch(a, x):
    if x > 0.0:
        for v in a:
            if v < 0.0:
                continue
            x = x * v
            if x > 1.5:
                x = x * x
                break
            else:
                x = x + 0.1
    return x


def ARGS():
    return np.array([0.9, -0.4, 1.3, 0.6, -0.8, 2.0]), 1.4
