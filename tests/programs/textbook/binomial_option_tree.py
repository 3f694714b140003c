"""American put on a Cox-Ross-Rubinstein tree, values overwritten level by level."""
import math

import numpy as np


def f(s0, strike, rate, sigma, maturity, steps=12):
    dt = maturity / steps
    up = math.exp(sigma * math.sqrt(dt))
    down = 1.0 / up
    disc = math.exp(-rate * dt)
    p = (math.exp(rate * dt) - down) / (up - down)
    values = np.zeros(steps + 1)
    for j in range(steps + 1):
        values[j] = max(strike - s0 * up**j * down ** (steps - j), 0.0)
    for i in range(steps - 1, -1, -1):
        for j in range(i + 1):
            hold = disc * (p * values[j + 1] + (1 - p) * values[j])
            exercise = strike - s0 * up**j * down ** (i - j)
            values[j] = max(hold, exercise)
    return values[0]


ARGS = (97.3, 100.0, 0.05, 0.31, 1.0)
