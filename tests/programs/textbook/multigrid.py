"""A V-cycle for the Poisson equation in one dimension, recursive over the grids."""
import numpy as np


def residual(u, b, h):
    r = np.zeros_like(u)
    r[1:-1] = b[1:-1] - (2 * u[1:-1] - u[:-2] - u[2:]) / h**2
    return r


def smooth(u, b, h, sweeps):
    for _ in range(sweeps):
        for i in range(1, len(u) - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1] + h * h * b[i])


def v_cycle(u, b, h):
    smooth(u, b, h, 2)
    if len(u) <= 3:
        return u
    r = residual(u, b, h)
    coarse_b = r[::2].copy()
    coarse_b[1:-1] = 0.25 * (r[1:-2:2] + 2 * r[2:-1:2] + r[3::2])
    e = v_cycle(np.zeros(len(coarse_b)), coarse_b, 2 * h)
    u[::2] += e
    u[1::2] += 0.5 * (e[:-1] + e[1:])
    smooth(u, b, h, 2)
    return u


def f(b, left, right):
    u = np.zeros(len(b))
    u[0], u[-1] = left, right
    for _ in range(2):
        u = v_cycle(u, b, 1.0 / (len(b) - 1))
    return u @ u


def ARGS():
    return np.sin(np.arange(9) * 0.7), 0.3, -0.2
