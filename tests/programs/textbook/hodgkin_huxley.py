"""A neuron model with gates as small functions and an exponential integrator."""
import numpy as np


def vtrap(x, y):
    if abs(x / y) < 1e-6:
        return y * (1 - x / y / 2)
    return x / (np.exp(x / y) - 1)


def gates(v):
    am, bm = 0.1 * vtrap(-(v + 40), 10), 4 * np.exp(-(v + 65) / 18)
    ah, bh = 0.07 * np.exp(-(v + 65) / 20), 1 / (np.exp(-(v + 35) / 10) + 1)
    an, bn = 0.01 * vtrap(-(v + 55), 10), 0.125 * np.exp(-(v + 65) / 80)
    return (am, bm), (ah, bh), (an, bn)


def f(gna, gk, current):
    v, m, h, n = -65.0, 0.05, 0.6, 0.32
    dt = 0.05
    peak = v
    for step in range(60):
        (am, bm), (ah, bh), (an, bn) = gates(v)
        m += (am / (am + bm) - m) * (1 - np.exp(-dt * (am + bm)))
        h += (ah / (ah + bh) - h) * (1 - np.exp(-dt * (ah + bh)))
        n += (an / (an + bn) - n) * (1 - np.exp(-dt * (an + bn)))
        i_na = gna * m**3 * h * (v - 50)
        i_k = gk * n**4 * (v + 77)
        i_l = 0.3 * (v + 54.4)
        v += dt * (current - i_na - i_k - i_l)
        peak = max(peak, v)
    return peak + 0.1 * v


ARGS = (120.0, 36.0, 12.0)
TOL = 1e-6
