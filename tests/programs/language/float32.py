"""Single precision stays single precision, in scalars and arrays."""
import numpy as np


def at_top(a, x):
    b = a * 2.0 + x
    return np.sum(b * b) * x


def in_for(a, x):
    s = np.float32(0.0)
    for i in range(len(a)):
        s += a[i] * x
        a[i] = s
    return s * a[1]


def in_while(a, x):
    k = 0
    while k < 3:
        a[1:] += np.float32(0.5) * a[:-1]
        k += 1
    return np.sum(a) * x


def in_branch(a, x):
    if a[0] > 0:
        a = np.exp(-a)
    return a.sum() + x


def in_nested_loops(a, x):
    total = 0.0
    for i in range(len(a)):
        for j in range(i):
            total += a[i] * a[j]
        k = 0
        while k < 2:
            total = total * x
            k += 1
    return total


def in_nested_loops_after_a_branch(a, x):
    total = 0.0 if x > 1.0 else 0.5
    for i in range(2):
        for j in range(len(a)):
            total += a[i] * a[j]
    return total


def ARGS():
    return np.array([0.5, 1.25, 0.75, 2.0], dtype=np.float32), np.float32(1.5)


TOL = 2e-5
