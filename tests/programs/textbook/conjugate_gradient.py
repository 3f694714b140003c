"""Conjugate gradients until the residual is small."""
import numpy as np


def f(a, b):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for i in range(len(b) * 2):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if np.sqrt(new) < 1e-3:
            break
        p = r + (new / rs) * p
        rs = new
    return np.sum(x * x)


def ARGS():
    return np.array([[3.0, 0.4, 0.1, 0.0], [0.4, 2.2, 0.3, 0.5], [0.1, 0.3, 1.7, 0.2], [0.0, 0.5, 0.2, 2.5]]), np.array([1.0, 0.3, -0.8, 0.5])
