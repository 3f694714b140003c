"""EGARCH filter with a leverage term; parameters come as keyword-only arguments with defaults."""
import numpy as np

def log_variance(shocks, *, omega, alpha, beta, gamma=0.0):
    logs = [omega / (1 - beta)]
    for z in shocks:
        logs.append(omega + beta * logs[-1] + alpha * (abs(z) - np.sqrt(2 / np.pi)) + gamma * z)
    return np.array(logs[1:])

def f(returns, params):
    std = returns / np.std(returns)
    h = log_variance(std, **params)
    return 0.5 * np.sum(h + returns**2 * np.exp(-h)) + params["alpha"] ** 2

ARGS = (
    np.array([0.3, -0.7, 1.1, 0.2, -0.4]),
    {"omega": -0.2, "alpha": 0.15, "beta": 0.9, "gamma": -0.05},
)
