"""Once a wrong gradient: a seed whose name was given to another cotangent."""

import numpy as np


def step(u, u1, u2):
    u2 = max(1.0, float(u), 0.5)
    return u2 + u1


def f(q):
    q = step(q, q, q)
    x, q = (q, q)
    return (q, q + x)


def ARGS():
    return (-2.0,)


WRT = (0,)
