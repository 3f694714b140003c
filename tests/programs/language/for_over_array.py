"""Iterating over arrays, rows and tuples."""
import numpy as np


def at_top(a, m):
    s = 0.0
    for value in a:
        s = s * 0.5 + value * value
    for row in m:
        s += row[0] * row[1]
    for weight in (0.5, 2.0, s):
        s += weight * a[0]
    return s


def in_for(a, m):
    s = 0.0
    for i in range(2):
        for row in m:
            for x in row:
                s += x * a[i] + i
    return s


def in_while(a, m):
    n = 0
    s = 1.0
    while n < 2:
        for x in a:
            s = s + x / s
        n += 1
    return s


def in_branch(a, m):
    s = 0.0
    if m[0, 0] > 0.0:
        for row in m:
            s += np.dot(row, row) * a[1]
    else:
        for x in a:
            s += x
    return s


def ARGS():
    return np.array([0.3, 1.2, 0.8]), np.array([[1.0, 2.0], [0.5, 0.7], [1.5, 1.1]])
