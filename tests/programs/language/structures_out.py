"""Results that are tuples, dicts and dataclasses of arrays and floats."""
import dataclasses

import numpy as np


@dataclasses.dataclass
class Fit:
    centre: np.ndarray
    spread: float


def at_top(a, x):
    return {"mean": np.mean(a) * x, "parts": (a * x, x * x)}


def in_for(a, x):
    pair = (0.0, 1.0)
    for v in a:
        pair = (pair[0] + v * x, pair[1] * v)
    return pair


def in_branch(a, x):
    if x > 0.0:
        fit = Fit(a * x, x + a[0])
    else:
        fit = Fit(a, x)
    return fit


def ARGS():
    return np.array([0.9, 1.4, 0.6]), 1.2
