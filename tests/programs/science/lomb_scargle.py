"""Lomb-Scargle power of unevenly sampled data at several frequencies."""
import numpy as np

def power(t, y, omega):
    tau = np.arctan2(np.sum(np.sin(2 * omega * t)), np.sum(np.cos(2 * omega * t))) / (2 * omega)
    c, s = np.cos(omega * (t - tau)), np.sin(omega * (t - tau))
    return 0.5 * ((y @ c) ** 2 / (c @ c) + (y @ s) ** 2 / (s @ s))

def f(t, y):
    y = y - y.mean()
    spectrum = [power(t, y, 2 * np.pi * nu) for nu in np.linspace(0.1, 0.9, 5)]
    best = max(range(len(spectrum)), key=lambda k: spectrum[k])
    return spectrum[best] / sum(spectrum)

ARGS = (
    np.array([0.0, 0.7, 1.9, 2.4, 3.8, 5.1]),
    np.array([0.1, 0.9, -0.4, -0.8, 0.7, -0.2]),
)
