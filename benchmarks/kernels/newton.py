"""Kepler's equation for many anomalies by Newton's method: a `while` with data-dependent trips."""

import math

import numpy as np

FIRST, GOAL = 2.0, 1.6
WRT = (0, 1)


def f(anomaly, eccentricity):
    total = 0.0
    for i in range(anomaly.size):
        m = anomaly[i]
        e = eccentricity[i]
        x = m + e * math.sin(m)
        step = 1.0
        while abs(step) > 1e-12:
            step = (x - e * math.sin(x) - m) / (1.0 - e * math.cos(x))
            x -= step
        total += x * x
    return total


def args(n=1000):
    rng = np.random.default_rng(0)
    return rng.uniform(0.1, 3.0, n), rng.uniform(0.05, 0.9, n)


def small():
    return args(8)
