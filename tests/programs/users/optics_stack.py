"""Reflectance of a stack of thin films by characteristic matrices; a dictionary of layers, complex indices as pairs."""

import numpy as np

LIBRARY = {"air": 1.0, "glass": 1.52, "mgf2": 1.38, "tio2": 2.4}


class Layer:
    def __init__(self, material, thickness):
        self.n = LIBRARY[material]
        self.d = thickness

    def matrix(self, wavelength, cos_theta):
        delta = 2 * np.pi * self.n * self.d * cos_theta / wavelength
        return np.array([[np.cos(delta), np.sin(delta) / self.n], [-self.n * np.sin(delta), np.cos(delta)]])


def reflectance(layers, wavelength, substrate="glass", angle=0.0):
    m = np.eye(2)
    for layer in layers:
        cos_t = np.sqrt(1 - (np.sin(angle) / layer.n) ** 2)
        m = m @ layer.matrix(wavelength, cos_t)
    ns = LIBRARY[substrate]
    re = m[0, 0] - ns * m[1, 1]
    im = ns * m[0, 1] + m[1, 0]
    re2 = m[0, 0] + ns * m[1, 1]
    im2 = ns * m[0, 1] - m[1, 0]
    return (re**2 + im**2) / (re2**2 + im2**2)


def f(thicknesses, angle):
    names = ["mgf2", "tio2", "mgf2"]
    layers = [Layer(n, d) for n, d in zip(names, thicknesses)]
    bands = {"blue": 450.0, "green": 550.0, "red": 650.0}
    total = 0.0
    for name, lam in bands.items():
        weight = 2.0 if name == "green" else 1.0
        total += weight * reflectance(layers, lam, angle=angle)
    return total / len(bands)


ARGS = (np.array([99.6, 57.3, 49.8]), 0.2)
