"""Logistic regression by iteratively reweighted least squares."""
import numpy as np


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def f(X, y, ridge):
    w = np.zeros(X.shape[1])
    for it in range(6):
        p = sigmoid(X @ w)
        s = p * (1 - p)
        H = X.T @ (s[:, None] * X) + ridge * np.eye(X.shape[1])
        g = X.T @ (p - y) + ridge * w
        step = np.linalg.solve(H, g)
        w = w - step
        if np.linalg.norm(step) < 1e-6:
            break
    return w @ w


def ARGS():
    rng = np.random.default_rng(10)
    X = np.hstack([np.ones((8, 1)), rng.normal(size=(8, 2))])
    return X, np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0]), 0.5
