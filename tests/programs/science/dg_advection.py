"""Discontinuous Galerkin for advection: Legendre modes, strong stability preserving Runge-Kutta."""
import numpy as np


def rhs(u, speed, h):
    cells, modes = u.shape
    out = np.zeros_like(u)
    right = u.sum(axis=1)
    upwind = np.roll(right, 1)
    for e in range(cells):
        for k in range(modes):
            volume = 0.0
            for j in range(k - 1, -1, -2):
                volume += 2.0 * u[e, j]
            sign = -1.0 if k % 2 else 1.0
            out[e, k] = (2 * k + 1) / h * speed * (volume - right[e] + sign * upwind[e])
    return out


def f(u0, speed):
    h, dt = 0.25, 0.01
    u = u0.copy()
    for _ in range(8):
        a = u + dt * rhs(u, speed, h)
        b = 0.75 * u + 0.25 * (a + dt * rhs(a, speed, h))
        u = u / 3.0 + 2.0 / 3.0 * (b + dt * rhs(b, speed, h))
    return (u[:, 0] ** 2).sum() + u[1, 2] * speed


ARGS = (np.array([[1.0, 0.1, 0.05], [0.5, -0.2, 0.02], [0.2, 0.05, -0.01], [0.7, 0.3, 0.04]]), 0.8)
