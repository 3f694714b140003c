"""a.T, reshape, ravel and rows of a matrix, read and stored through."""
import numpy as np


def at_top(a):
    t = a.T
    t[0] = a[0, 1] * 2.0
    flat = a.reshape(-1)
    flat[3] += flat[0] * flat[1]
    line = a.ravel()
    line[5] *= line[4]
    return np.sum(a * a) + t[2, 1]


def in_for(a):
    for i in range(2):
        row = a[i]
        row *= a[1 - i, 0]
        row[2] = row[0] * row[1]
        col = a.T[i]
        col += row[:2]
    return np.sum(a * a)


def in_while(a):
    k = 0
    while k < 3:
        a.T[k, :] = a.reshape(3, 2)[k] * 1.5
        k += 1
    return np.sum(a**2)


def in_branch(a):
    b = a * 1.0
    if b[0, 0] > 0.0:
        v = b.reshape(6)
    else:
        v = b.T.reshape(6)
    v[1:] *= v[:-1]
    return np.sum(b * b)


def ARGS():
    return (np.array([[0.8, 1.2, 0.6], [1.1, 0.7, 0.9]]),)
