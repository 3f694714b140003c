"""The differentiated function itself has defaults and keyword-only parameters."""
import numpy as np


def f(u, k=0.5, *, steps=3, damping=1.0):
    for _ in range(steps):
        u = u - k * damping * u * u
    return np.sum(u)


def ARGS():
    return (np.array([0.5, 0.9]), 0.3)


KWARGS = {"steps": 4, "damping": 0.8}
