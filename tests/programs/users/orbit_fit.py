"""Radial velocities of a star with a planet: Kepler's equation by Newton, several instruments, a prior by name."""

import numpy as np


def eccentric_anomaly(mean, e, tol=1e-13):
    big = mean + e * np.sin(mean)
    for _ in range(50):
        step = (big - e * np.sin(big) - mean) / (1 - e * np.cos(big))
        big = big - step
        if np.max(np.abs(step)) < tol:
            break
    return big


def velocity(t, period, k, e, omega, t0):
    mean = 2 * np.pi * (t - t0) / period
    big = eccentric_anomaly(mean, e)
    nu = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(big / 2), np.sqrt(1 - e) * np.cos(big / 2))
    return k * (np.cos(nu + omega) + e * np.cos(omega))


def f(planet, offsets, jitter):
    data = {"harps": (np.array([0.3, 1.1, 2.9]), np.array([2.0, -7.0, 4.0])), "keck": (np.array([4.2, 5.8]), np.array([9.0, -3.0]))}
    chi2 = 0.0
    for name, (t, rv) in data.items():
        model = velocity(t, **planet) + offsets[name]
        var = 1.0 + jitter**2
        chi2 += np.sum((rv - model) ** 2 / var + np.log(var))
    if not 0 <= planet["e"] < 1:
        return np.inf
    return chi2 + (planet["e"] / 0.3) ** 2


ARGS = (dict(period=3.1, k=11.0, e=0.27, omega=0.6, t0=0.2), {"harps": 0.5, "keck": -0.3}, 0.8)
