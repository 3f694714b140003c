"""Lorenz's 1996 model by Runge-Kutta: modulo indices and stage buffers that are overwritten in every step."""

import numpy as np

FIRST, GOAL = 2.5, 1.1
WRT = (0, 1)


def tendency(x, forcing, dx):
    n = x.size
    for i in range(n):
        dx[i] = (x[(i + 1) % n] - x[(i - 2) % n]) * x[(i - 1) % n] - x[i] + forcing


def f(x0, forcing, dt, steps):
    x = x0.copy()
    n = x.size
    k1 = np.empty(n)
    k2 = np.empty(n)
    k3 = np.empty(n)
    k4 = np.empty(n)
    stage = np.empty(n)
    for _ in range(steps):
        tendency(x, forcing, k1)
        for i in range(n):
            stage[i] = x[i] + 0.5 * dt * k1[i]
        tendency(stage, forcing, k2)
        for i in range(n):
            stage[i] = x[i] + 0.5 * dt * k2[i]
        tendency(stage, forcing, k3)
        for i in range(n):
            stage[i] = x[i] + dt * k3[i]
        tendency(stage, forcing, k4)
        for i in range(n):
            x[i] += dt / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i])
    energy = 0.0
    for i in range(n):
        energy += x[i] * x[i]
    return energy


def args(n=40, steps=2000, dt=0.0005):
    return 8.0 + np.random.default_rng(0).normal(size=n), 8.0, dt, steps


def small():
    return args(6, 4, 0.01)
