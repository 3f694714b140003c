"""Projection onto the simplex by sorting and a threshold, inside projected gradient steps."""
import numpy as np

def project(v):
    u = np.sort(v)[::-1]
    css = np.cumsum(u)
    k = np.arange(1, len(v) + 1)
    rho = np.nonzero(u * k > css - 1)[0][-1]
    theta = (css[rho] - 1) / (rho + 1.0)
    return np.maximum(v - theta, 0)

def f(x, q, lr=0.2, steps=4):
    for _ in range(steps):
        x = project(x - lr * (q @ x - 0.3))
    return x @ q @ x

def ARGS():
    return np.array([0.5, 0.3, 0.9]), np.array([[2.0, 0.2, 0.1], [0.2, 1.0, 0.3], [0.1, 0.3, 1.5]])
