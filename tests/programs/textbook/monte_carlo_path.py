"""Asian option by Euler paths with given noise."""
import numpy as np


def f(s0, rate, sigma, noise, strike):
    paths, steps = noise.shape
    dt = 1.0 / steps
    payoff = 0.0
    for p in range(paths):
        s = s0
        mean = 0.0
        for t in range(steps):
            s *= np.exp((rate - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * noise[p, t])
            mean += s / steps
        if mean > strike:
            payoff += mean - strike
    return np.exp(-rate) * payoff / paths


def ARGS():
    return 1.03, 0.05, 0.3, np.random.default_rng(8).normal(size=(6, 5)), 1.0


WRT = ("s0", "rate", "sigma")
