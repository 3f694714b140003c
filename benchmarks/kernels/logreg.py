"""Logistic regression: a matrix-vector product and log1p(exp)."""

import numpy as np

FIRST, GOAL = 1.5, 0.85
WRT = (0,)


def f(w, x, y):
    z = x @ w
    return np.sum(np.log1p(np.exp(-y * z))) + 0.5 * np.sum(w * w)


def args(n=10_000, d=50):
    rng = np.random.default_rng(0)
    return rng.normal(size=d) / np.sqrt(d), rng.normal(size=(n, d)), np.sign(rng.normal(size=n))


def small():
    return args(7, 4)
