"""Ordinal regression with ordered cut points from increments; math.erf per row."""
import math
import numpy as np

def Phi(z):
    return 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))

def f(beta, raw, X, labels):
    cuts = np.cumsum(np.concatenate([raw[:1], np.exp(raw[1:])]))
    total = 0.0
    for row, label in zip(X, labels):
        eta = float(row @ beta)
        upper = Phi(cuts[label] - eta) if label < len(cuts) else 1.0
        lower = Phi(cuts[label - 1] - eta) if label > 0 else 0.0
        total -= math.log(max(upper - lower, 1e-12))
    return total

WRT = (0, 1)
def ARGS():
    rng = np.random.default_rng(7)
    return np.array([0.4, -0.3]), np.array([-0.5, 0.1]), rng.normal(size=(6, 2)), np.array([0, 1, 2, 1, 0, 2])
