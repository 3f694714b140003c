"""Goertzel filters for a list of tones, by state updates in a while loop."""
import numpy as np

import math

def goertzel(samples, tone, rate):
    coeff = 2.0 * math.cos(2.0 * math.pi * tone / rate)
    s1 = s2 = 0.0
    k = 0
    while k < len(samples):
        s0 = samples[k] + coeff * s1 - s2
        s2, s1 = s1, s0
        k += 1
    return s1 * s1 + s2 * s2 - coeff * s1 * s2

def f(samples, tones, rate=8.0):
    powers = {}
    for name, tone in tones.items():
        powers[name] = goertzel(samples, tone, rate)
    total = sum(powers.values())
    return {name: p / total for name, p in powers.items()}

ARGS = (np.array([0.1, 0.8, -0.3, -0.9, 0.2, 0.5]), {"a": 1.3, "b": 2.1})
