"""A Metropolis chain with given proposals: the accepted path is a constant, its density is not."""
import numpy as np

RNG = np.random.default_rng(8)
STEPS = RNG.normal(0, 0.6, (10, 2))
COINS = RNG.random(10)

def log_density(x, params):
    mean, scale = params
    return -0.5 * np.sum(((x - mean) / scale) ** 2) - np.sum(np.log(scale))

def f(mean, scale):
    state = np.array([0.3, -0.2])
    current = log_density(state, (mean, scale))
    kept, trace = 0, []
    for step, coin in zip(STEPS, COINS):
        proposal = state + step
        new = log_density(proposal, (mean, scale))
        if np.log(coin) < new - current:
            state, current = proposal, new
            kept += 1
        trace.append(current)
    return sum(trace) / len(trace) + 0.01 * kept

ARGS = (np.array([0.1, 0.2]), np.array([0.9, 1.3]))
