"""linspace, arange, zeros_like, ones_like, full_like, eye, diag, copy, array, asarray, meshgrid."""
import numpy as np


def at_top(a, x):
    grid = np.linspace(0.0, x, 4)
    ramp = np.arange(3.0) * x
    z = np.zeros_like(a)
    z[:] = a
    m = np.eye(3) * x + np.diag(a) + np.ones_like(a) + np.full_like(a, 2.0) + np.identity(3)
    c = np.array(a) + np.asarray(a) * np.copy(a) + a.copy()
    p, q = np.meshgrid(a, grid)
    return np.sum(grid**2) + np.sum(ramp * z) + np.sum(m * m) + np.sum(c) + np.sum(p * q)


def in_for(a, x):
    s = 0.0
    for n in range(2, 5):
        t = np.linspace(0.1, x, n, endpoint=False)
        s += np.sum(np.sin(t)) * a[n - 2]
    return s


def in_while(a, x):
    m = np.eye(3)
    while np.trace(m) < 8.0:
        m = m @ (np.eye(3) + np.diag(a) * x)
    return np.sum(m)


def in_branch(a, x):
    if x > 0.0:
        b = np.empty_like(a)
        b.fill(x)
    else:
        b = a.copy()
    return np.sum(b * a)


def ARGS():
    return np.array([0.9, 1.4, 0.6]), 1.3
