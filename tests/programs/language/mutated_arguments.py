"""Arguments written in place: the caller sees it, the gradient is with respect to what came in."""
import numpy as np


def at_top(u, k):
    u *= k
    u[0] = 3.0
    return np.sum(u * u)


def in_for(u, k):
    for t in range(3):
        u[1:-1] += k * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u[0] = u[1] * k
    return u[2]


def in_while(u, k):
    while u[1] < 4.0:
        u[:] = u * (1.0 + k)
    return np.sum(u)


def in_branch(u, k):
    if k > 0.1:
        u[1] = u[0] * u[2]
    else:
        u[:] = 0.0
    return u[1] * u[2] * k


def ARGS():
    return np.array([0.5, 1.5, 0.8, 1.1]), 0.3
