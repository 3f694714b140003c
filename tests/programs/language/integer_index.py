"""Reading and writing by arrays of indices, with repeats."""
import numpy as np


def at_top(a, x, idx):
    picked = a[idx]
    a[idx] = x * np.arange(4.0)
    a[[0, 2]] *= 2.0
    return np.sum(picked * picked) + np.sum(a * a)


def in_for(a, x, idx):
    for k in range(2):
        a[idx] += x * a[k]
        np.add.at(a, idx, x)
        a[idx[k]] *= 1.5
    return np.sum(a * a)


def in_while(a, x, idx):
    k = 0
    while k < len(idx):
        a = a[np.argsort(-a)]
        a[idx[k]] = a[0] * x
        k += 2
    return np.sum(a * np.array([1.0, 2.0, 3.0]))


def in_branch(a, x, idx):
    if x > 0.0:
        a = a[idx] * x
    return np.sum(np.cumsum(a) ** 2)


def ARGS():
    return np.array([0.7, 1.5, 0.9]), 1.2, np.array([2, 0, 2, 1])
