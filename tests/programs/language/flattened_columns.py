"""Arrays whose columns are contiguous, flattened without a copy, and stored through."""

import numpy as np


def at_top(u):
    v = u.T.reshape(-1)
    v[-2:] = np.cos(v[:2] * u[0, 0])
    return (u * u).sum()


def in_for(u):
    v = u.T.ravel()
    s = 0.0
    for k in range(3):
        v[k] = np.sin(v[k + 1] * u[0, 0])
        s += v[k] * v[-1]
    return s + (u * u).sum()


ARGS = (np.linspace(0.3, 1.4, 12).reshape(4, 3).T,)
