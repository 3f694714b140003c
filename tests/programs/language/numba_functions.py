"""Functions that numba already compiled, as callees."""
import numba
import numpy as np


@numba.njit
def kinetic(v, m):
    s = 0.0
    for i in range(v.size):
        s += 0.5 * m[i] * v[i] ** 2
    return s


@numba.jit(nopython=True)
def lift(x):
    return x * x + 1.0


@numba.vectorize
def soft(x):
    return np.log1p(np.exp(x))


def at_top(v, m):
    return kinetic(v, m) * lift(v[0]) + np.sum(soft(v))


def in_for(v, m):
    s = 0.0
    for i in range(3):
        s += kinetic(v * i, m) + lift(s) * 0.1
    return s


def in_while(v, m):
    while kinetic(v, m) < 5.0:
        v = v * 1.3
    return lift(v[1]) * m[0]


def in_branch(v, m):
    if m[0] > 0.0:
        v = soft(v * m)
    return kinetic(v, m)


def ARGS():
    return np.array([0.9, -1.4, 0.6]), np.array([0.5, 1.5, 1.1])
