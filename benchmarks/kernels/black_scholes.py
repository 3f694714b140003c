"""Prices of a million options: erf, exp, log, sqrt."""

import math

import numpy as np

FIRST, GOAL = 1.4, 0.6
WRT = (0, 1, 2, 3, 4)


def normal_cdf(x):
    return 0.5 + 0.5 * math.erf(x * 0.7071067811865476)


def f(spot, strike, maturity, rate, volatility):
    total = 0.0
    for i in range(spot.size):
        spread = volatility * math.sqrt(maturity[i])
        d1 = (math.log(spot[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * maturity[i]) / spread
        d2 = d1 - spread
        total += spot[i] * normal_cdf(d1) - strike[i] * math.exp(-rate * maturity[i]) * normal_cdf(d2)
    return total


def args(n=1_000_000):
    rng = np.random.default_rng(0)
    return rng.uniform(20.0, 30.0, n), rng.uniform(20.0, 40.0, n), rng.uniform(0.5, 2.0, n), 0.05, 0.3


def small():
    return args(5)
