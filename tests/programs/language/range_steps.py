"""range with start, step, negative step, and steps held in variables."""
import numpy as np


def at_top(a):
    s = 0.0
    for i in range(2, 8, 3):
        s += a[i] * i
    for i in range(7, -1, -2):
        s = s * 0.9 + a[i]
    step = 3
    for i in range(0, 8, step):
        s -= a[i] ** 2
    step = -step
    for i in range(7, 0, step):
        s *= a[i]
    return s


def in_for(a):
    s = 1.0
    for i in range(3):
        for j in range(i, 8, i + 1):
            s = s + a[j] * a[i]
    return s


def in_while(a):
    n = 8
    s = 0.0
    while n > 1:
        for j in range(n - 1, -1, -n // 2):
            s += a[j] * n
        n //= 2
    return s


def in_branch(a):
    s = 0.0
    if a[0] < 10.0:
        for i in range(len(a) - 1, 0, -1):
            s = s + a[i] * a[i - 1]
    return s


def ARGS():
    return (np.linspace(0.5, 1.6, 8),)
