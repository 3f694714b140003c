"""None, strings and flags select what is computed."""
import numpy as np


def model(x, w, kind="tanh", bias=None, normalise=False):
    z = x * w
    if bias is not None:
        z = z + bias
    if kind == "tanh":
        z = np.tanh(z)
    elif kind in ("relu", "ramp"):
        z = np.maximum(z, 0.0)
    else:
        raise ValueError(f"unknown kind {kind}")
    if normalise:
        z = z / np.sum(z)
    return z


def f(x, w):
    a = model(x, w)
    b = model(a, w, kind="relu", bias=x)
    c = model(b, w, normalise=True, bias=None)
    return np.sum(a * b) + c[0]


def ARGS():
    return np.array([0.6, 1.1, 0.3]), np.array([0.9, 0.4, 1.2])
