"""NumPy's choices between numbers give arrays without axes; a helper joins what it makes of them in a branch."""

import numpy as np


def lifted(u):
    half = u / 2.0
    return max(0, half) + u + half


def at_top(p):
    low = np.maximum(lifted(p), 0.3)
    high = np.minimum(np.clip(lifted(p), 0.1, 9.0), lifted(low))
    either = np.where(p > 0, lifted(high), 2.0)
    return np.sum(lifted(np.sum(either))) * np.linspace(0.0, lifted(p), 3)[1]


def in_while(p):
    while p < 30.0:
        p = np.where(p > 0, lifted(p), 0.0)
    return p + 1.0


ARGS = (1.3,)
