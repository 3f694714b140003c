"""Kepler's equation and an orbit from position and velocity: elements, propagation, position after some time."""
import math
import numpy as np
from typing import NamedTuple

MU = 1.0


class Orbit(NamedTuple):
    a: float
    e: float
    p_hat: np.ndarray
    q_hat: np.ndarray
    mean: float


def elements(r, v):
    h = np.cross(r, v)
    e_vec = np.cross(v, h) / MU - r / np.linalg.norm(r)
    e = np.linalg.norm(e_vec)
    a = 1.0 / (2.0 / np.linalg.norm(r) - v @ v / MU)
    p_hat = e_vec / e
    q_hat = np.cross(h / np.linalg.norm(h), p_hat)
    E = math.atan2(r @ q_hat / (a * math.sqrt(1 - e * e)), r @ p_hat / a + e)
    return Orbit(a, e, p_hat, q_hat, E - e * math.sin(E))


def kepler(M, e):
    E = M if e < 0.8 else math.pi
    while True:
        step = (E - e * math.sin(E) - M) / (1.0 - e * math.cos(E))
        E -= step
        if abs(step) < 1e-14:
            return E


def f(r, v, dt):
    o = elements(r, v)
    n = math.sqrt(MU / o.a**3)
    E = kepler(o.mean + n * dt, o.e)
    place = o.a * ((math.cos(E) - o.e) * o.p_hat + math.sqrt(1 - o.e**2) * math.sin(E) * o.q_hat)
    return place[0] + 2.0 * place[1] * place[2]


ARGS = (np.array([1.0, 0.1, -0.05]), np.array([0.05, 0.9, 0.2]), 1.7)
