"""Filling fresh zeros, empty, ones and full buffers."""
import numpy as np


def at_top(x, y):
    a = np.zeros(3)
    a[0] = x
    a[1] = x * y
    b = np.empty((2, 2))
    b[0, 0] = y
    b[0, 1] = x
    b[1] = a[:2]
    c = np.full(3, x)
    c[1] = 0.0
    return np.sum(a * c) + np.sum(b * b) + np.sum(np.ones(2) * y)


def in_for(x, y):
    s = 0.0
    for i in range(3):
        buf = np.empty(i + 1)
        buf[0] = x
        for j in range(i):
            buf[j + 1] = buf[j] * y
        s += np.sum(buf)
    return s


def in_while(x, y):
    n = 1
    row = np.zeros(4)
    row[0] = x
    while n < 4:
        new = np.zeros(4)
        new[0] = row[0] * y
        for j in range(1, n + 1):
            new[j] = row[j - 1] + row[j] * x
        row = new
        n += 1
    return np.sum(row * row)


def in_branch(x, y):
    if x > 0.0:
        a = np.zeros(2)
        a[0] += x
    else:
        a = np.empty(2)
        a[:] = y
    a[1] = a[0] * y
    return a[0] + a[1]


ARGS = (1.2, 0.7)
