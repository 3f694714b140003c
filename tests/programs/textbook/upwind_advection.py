"""Upwind advection with a velocity of changing sign and periodic ends."""
import numpy as np


def f(u, velocity, dt):
    n = u.size
    dx = 1.0 / n
    for step in range(5):
        old = u.copy()
        for i in range(n):
            if velocity[i] > 0:
                u[i] = old[i] - velocity[i] * dt / dx * (old[i] - old[i - 1])
            else:
                u[i] = old[i] - velocity[i] * dt / dx * (old[(i + 1) % n] - old[i])
    return np.sum(u**2) * dx


def ARGS():
    return np.array([0.1, 0.8, 1.3, 0.7, 0.2, 0.05]), np.array([0.5, 0.9, 0.4, -0.3, -0.8, 0.2]), 0.05
