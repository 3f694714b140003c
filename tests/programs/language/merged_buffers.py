"""One name for different buffers on different paths, stored through while the others are in use."""
import numpy as np


def at_top(a, b, x):
    c = a if x > 0.0 else b
    c[0] *= x
    d = c if a[0] > 100.0 else b
    d[1] = c[0] * a[1]
    return np.sum(a * b) + np.sum(c) * d[1]


def in_for(a, b, x):
    work = np.zeros(3)
    for i in range(4):
        into = a if i % 2 == 0 else work
        into += x * b
        b = into if i == 2 else b
        b[i % 3] *= a[0]
    return np.sum(a * work) + np.sum(b)


def in_while(a, b, x):
    best = a
    k = 0
    while k < 3:
        other = best * x
        if np.sum(other) > np.sum(b):
            best = other
        else:
            best = b
        best[k] = a[k] * b[k]
        k += 1
    return np.sum(best) + np.sum(a * b)


def in_branch(a, b, x):
    left, right = a[:2], b[1:]
    if x > 0.5:
        left, right = right, left
    left[0] += right[1] * x
    whole = left
    if right[0] > 0.0:
        whole = right
        whole *= 2.0
    left += whole * b[0]
    return np.sum(a * b) + whole[0]


def ARGS():
    return np.array([0.8, 1.2, 0.6]), np.array([0.5, 0.9, 1.4]), 1.3
