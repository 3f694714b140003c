"""Rays through two spherical surfaces; the spread of where they meet the image plane."""

from dataclasses import dataclass

import numpy as np

@dataclass
class Surface:
    radius: float
    z: float
    n_after: float

class TotalReflection(Exception):
    pass

def refract(d, nrm, mu):
    cosi = -np.dot(nrm, d)
    k = 1 - mu**2 * (1 - cosi**2)
    if k < 0:
        raise TotalReflection(f"k = {k}")
    return mu * d + (mu * cosi - np.sqrt(k)) * nrm

def f(surfaces, heights, z_image=11.0):
    hits = np.zeros(len(heights))
    for i, y in enumerate(heights):
        p = np.array([y, -1.0])
        d = np.array([0.0, 1.0])
        n = 1.0
        for s in surfaces:
            c = np.array([0.0, s.z + s.radius])
            oc = p - c
            b = oc @ d
            disc = b * b - (oc @ oc - s.radius**2)
            t = -b - np.sign(s.radius) * np.sqrt(disc)
            p = p + t * d
            nrm = (p - c) / s.radius
            d = refract(d, nrm, n / s.n_after)
            n = s.n_after
        hits[i] = p[0] + d[0] / d[1] * (z_image - p[1])
    return np.std(hits)

WRT = (0, 1)
ARGS = ([Surface(10.0, 0.0, 1.5), Surface(-12.0, 1.0, 1.0)], np.array([0.2, 0.5, 0.8]))
