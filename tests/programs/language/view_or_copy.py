"""Whether reshape and ravel copy depends on strides that only the run knows; both sides are stored through."""
import numpy as np


def at_top(a):
    a = a[::-1]
    flat = a.ravel()
    flat[1] = a[0, 0] * 3.0
    a[0, 2] = flat[3] * flat[1]
    return np.sum(a * a) + np.sum(flat)


def in_for(a):
    for k in range(2):
        part = a[k:] if k else a.T
        line = part.reshape(-1)
        line[1] *= a[0, 1]
        a[1, 1] += line[0]
    return np.sum(a * a)


def in_branch(a):
    b = a[::-1]
    if a[0, 0] > 0.0:
        b = b[:, ::2]
    block = b.reshape(-1)
    a[0] = 0.5
    return np.sum(block * block) + np.sum(a)


def ARGS():
    return (np.array([[0.8, 1.2, 0.6], [1.1, 0.7, 0.9]]),)


UNCOMPILED = "numba reshapes contiguous arrays alone"
