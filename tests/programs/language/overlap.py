"""Right-hand sides that overlap their target."""
import numpy as np


def at_top(a):
    a[1:] += a[:-1]
    a[:-1] *= a[1:]
    a += a[::-1]
    a[1:4] = a[:3]
    return np.sum(a * np.arange(1.0, 6.0))


def in_for(a):
    for k in range(2, 5):
        a[:k] += 0.3 * np.flip(a[:k])
    return np.sum(a * a)


def in_while(a):
    n = 0
    while a[0] < 3.0 and n < 5:
        a[:] = a[::-1] * 1.1 + a
        a[2:] -= 0.2 * a[:-2]
        n += 1
    return np.sum(a)


def in_branch(a):
    m = np.outer(a, a[::-1] ** 2)
    if a[0] > 0.0:
        m += m.T
        m[0] = m[:, 0]
    return np.sum(m * m)


def ARGS():
    return (np.array([0.7, 1.1, 0.4, 0.9, 0.5]),)
