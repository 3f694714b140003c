"""Apparent resistivity of a layered earth: a complex recursion in a compiled function, fitted with a smoothness term."""

import cmath
import math

import numpy as np
from numba import njit

MU = 4e-7 * math.pi


@njit
def impedance(resistivities, thicknesses, frequency):
    omega = 2 * math.pi * frequency
    n = len(resistivities)
    z = cmath.sqrt(1j * omega * MU * resistivities[n - 1])
    for k in range(n - 2, -1, -1):
        gamma = cmath.sqrt(1j * omega * MU / resistivities[k])
        own = gamma * resistivities[k]
        e = cmath.exp(-2 * gamma * thicknesses[k])
        r = (own - z) / (own + z)
        z = own * (1 - r * e) / (1 + r * e)
    return z


def sounding(log_rho, thick, freqs):
    rho_a = np.empty(len(freqs))
    phase = np.empty(len(freqs))
    for k, fr in enumerate(freqs):
        z = impedance(10**log_rho, thick, fr)
        rho_a[k] = abs(z) ** 2 / (2 * math.pi * fr * MU)
        phase[k] = math.degrees(cmath.phase(z))
    return rho_a, phase


class Misfit:
    weights = {"rho": 1.0, "phase": 0.02}

    def __init__(self, observed):
        self.observed = observed
        self.calls = 0

    def __call__(self, rho_a, phase):
        self.calls += 1
        terms = {
            "rho": np.sum((np.log10(rho_a) - np.log10(self.observed[:, 0])) ** 2),
            "phase": np.sum((phase - self.observed[:, 1]) ** 2),
        }
        return sum(self.weights[name] * value for name, value in terms.items())


def f(log_rho, thick, smoothing):
    freqs = np.logspace(-2, 2, 9)
    observed = np.column_stack((np.linspace(80, 30, 9), np.linspace(40, 55, 9)))
    misfit = Misfit(observed)
    total = misfit(*sounding(log_rho, thick, freqs))
    if misfit.calls == 1:
        total += smoothing * np.sum(np.diff(log_rho) ** 2)
    return total


ARGS = (np.array([2.0, 1.2, 2.6]), np.array([400.0, 1500.0]), 0.3)
