"""Negative log-likelihood of a GARCH(1,1) model."""
import numpy as np


def f(params, returns):
    omega, alpha, beta = params
    variance = np.var(returns)
    nll = 0.0
    for r in returns:
        nll += 0.5 * (np.log(2 * np.pi) + np.log(variance) + r**2 / variance)
        variance = omega + alpha * r**2 + beta * variance
    if alpha + beta >= 1:
        nll += 1e6 * (alpha + beta - 1)
    return nll


def ARGS():
    returns = np.array([0.3, -1.1, 0.6, 0.2, -0.4, 1.5, -0.2])
    return (0.1, 0.15, 0.7), returns
