"""Longstaff-Schwartz: an American put by regression on simulated paths, exercised where it pays."""
import numpy as np

SHOCKS = np.random.default_rng(3).standard_normal((12, 4))

def paths(s0, r, sigma, dt, shocks):
    n, m = shocks.shape
    s = np.empty((n, m + 1))
    s[:, 0] = s0
    for t in range(m):
        s[:, t + 1] = s[:, t] * np.exp((r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * shocks[:, t])
    return s

def f(s0, sigma, r=0.05, strike=1.0, maturity=1.0):
    n, m = SHOCKS.shape
    dt = maturity / m
    s = paths(s0, r, sigma, dt, SHOCKS)
    cash = np.maximum(strike - s[:, -1], 0.0)
    for t in range(m - 1, 0, -1):
        cash *= np.exp(-r * dt)
        money = strike > s[:, t]
        if not money.any():
            continue
        x = s[money, t]
        basis = np.stack([np.ones_like(x), x, x * x], axis=1)
        coef = np.linalg.solve(basis.T @ basis + 1e-6 * np.eye(3), basis.T @ cash[money])
        go_on = basis @ coef
        exercise = strike - x
        where = np.where(money)[0]
        for k, i in enumerate(where):
            if exercise[k] > go_on[k]:
                cash[i] = exercise[k]
    return np.mean(cash) * np.exp(-r * dt)

WRT = (0, 1)
ARGS = (1.02, 0.25)
