"""An arithmetic Asian option under Heston's model, full truncation, given the normal draws."""
import numpy as np
from dataclasses import dataclass


@dataclass
class Heston:
    kappa: float
    theta: float
    xi: float
    rho: float


def simulate(model, s0, v0, r, dt, z1, z2):
    n_steps, n_paths = z1.shape
    s = np.full(n_paths, s0)
    v = np.full(n_paths, v0)
    running = np.zeros(n_paths)
    for t in range(n_steps):
        vp = np.maximum(v, 0.0)
        w = model.rho * z1[t] + np.sqrt(1 - model.rho**2) * z2[t]
        s *= np.exp((r - 0.5 * vp) * dt + np.sqrt(vp * dt) * z1[t])
        v += model.kappa * (model.theta - vp) * dt + model.xi * np.sqrt(vp * dt) * w
        running += s
    return running / n_steps


def f(model, s0, v0, strike, r, z1, z2):
    average = simulate(model, s0, v0, r, 0.1, z1, z2)
    payoff = np.where(average > strike, average - strike, 0.0)
    return np.exp(-r * 0.1 * len(z1)) * payoff.mean()


WRT = ("model", "s0", "v0", "strike", "r")


def ARGS():
    rng = np.random.default_rng(12)
    return Heston(1.5, 0.06, 0.4, -0.6), 10.0, 0.05, 9.5, 0.02, rng.normal(size=(6, 8)), rng.normal(size=(6, 8))
