"""MUSCL reconstruction with a choice of limiters given as functions, one conservative update per step."""
import numpy as np

def minmod(a, b):
    return np.where(a * b > 0, np.where(np.abs(a) < np.abs(b), a, b), 0.0)

def van_leer(a, b):
    p = a * b
    return np.where(p > 0, 2 * p / np.where(p > 0, a + b, 1.0), 0.0)

def step(u, cfl, limiter):
    left = u - np.roll(u, 1)
    right = np.roll(u, -1) - u
    slope = limiter(left, right)
    face = u + 0.5 * (1 - cfl) * slope
    flux = 0.5 * face**2
    return u - cfl * (flux - np.roll(flux, 1))

def f(u, cfl, *, limiters=(minmod, van_leer), steps=3):
    total = 0.0
    for limiter in limiters:
        w = u
        for _ in range(steps):
            w = step(w, cfl, limiter)
        total += np.sum(w**2) * (1 if limiter is minmod else 2)
    return total

ARGS = (np.array([0.2, 0.9, 1.4, 0.8, 0.3, 0.15]), 0.3)
