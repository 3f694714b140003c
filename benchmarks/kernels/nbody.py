"""Gravity by leapfrog with a pair loop: inner temporaries should be recomputed, not recorded."""

import math

import numpy as np

FIRST, GOAL = 3.0, 2.0
WRT = (0, 1)


def forces(pos, mass, acc):
    n = mass.size
    for i in range(n):
        for d in range(3):
            acc[i, d] = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            dx = pos[j, 0] - pos[i, 0]
            dy = pos[j, 1] - pos[i, 1]
            dz = pos[j, 2] - pos[i, 2]
            r2 = dx * dx + dy * dy + dz * dz + 0.01
            w = 1.0 / (r2 * math.sqrt(r2))
            acc[i, 0] += mass[j] * w * dx
            acc[i, 1] += mass[j] * w * dy
            acc[i, 2] += mass[j] * w * dz
            acc[j, 0] -= mass[i] * w * dx
            acc[j, 1] -= mass[i] * w * dy
            acc[j, 2] -= mass[i] * w * dz


def f(pos0, vel0, mass, dt, steps):
    pos = pos0.copy()
    vel = vel0.copy()
    acc = np.zeros_like(pos)
    forces(pos, mass, acc)
    for _ in range(steps):
        for i in range(mass.size):
            for d in range(3):
                vel[i, d] += 0.5 * dt * acc[i, d]
                pos[i, d] += dt * vel[i, d]
        forces(pos, mass, acc)
        for i in range(mass.size):
            for d in range(3):
                vel[i, d] += 0.5 * dt * acc[i, d]
    energy = 0.0
    for i in range(mass.size):
        energy += 0.5 * mass[i] * (vel[i, 0] ** 2 + vel[i, 1] ** 2 + vel[i, 2] ** 2)
    return energy


def args(n=64, steps=50):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)), 0.1 * rng.normal(size=(n, 3)), rng.uniform(0.5, 1.5, n) / n, 0.01, steps


def small():
    return args(4, 3)
