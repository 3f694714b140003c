"""Checks and messages carry no derivative and do not disturb it."""
import numpy as np


def at_top(a, x):
    assert len(a) == 3, "three values"
    assert x > 0.0
    if x > 100.0:
        raise ValueError(f"x is {x:.3f}, too large for {len(a)} values")
    if a.ndim != 1:
        raise ValueError
    return np.sum(a) * x


def in_for(a, x):
    s = 0.0
    for i in range(len(a)):
        if a[i] < 0.0:
            raise ValueError("negative entry at " + str(i))
        s += a[i] * x
    print("sum is", s)
    return s * s


def in_while(a, x):
    n = 0
    while x < 5.0:
        x = x * (1.0 + a[0])
        n += 1
        if n > 50:
            raise RuntimeError("no convergence")
    return x


def in_branch(a, x):
    if x > 0.0:
        message = f"x = {x}"
        print(message)
        x = x * a[1]
    else:
        raise ValueError("x must be positive")
    return x


def ARGS():
    return np.array([0.9, 1.4, 0.6]), 1.2
