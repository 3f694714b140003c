"""Broadcasting in expressions, stores and augmented stores."""
import numpy as np


def at_top(m, v, x):
    a = m * v + x
    b = v[:, None] - v
    a += v
    a *= x
    a[:, :2] -= v[0]
    return np.sum(a * a) + np.sum(b * b * x)


def in_for(m, v, x):
    for i in range(2):
        m[i] = v * x
        m += m[i]
        m[:, i] = x
    return np.sum(m * m)


def in_while(m, v, x):
    n = 0
    while n < 2:
        m = m * v[n] + v - m.mean(axis=0)
        n += 1
    return np.sum(m * m * x)


def in_branch(m, v, x):
    row = v.reshape(1, 3)
    if x > 0.0:
        m = m + row * x
    else:
        m = m - row
    one = m[:1] * m
    return np.sum(one * m)


def ARGS():
    return np.array([[0.7, 1.2, 0.4], [1.1, 0.3, 0.9]]), np.array([0.9, 1.4, 0.6]), 1.3
