"""Gravity of a few bodies by the leapfrog scheme; the energy at the end."""
import numpy as np


def accelerations(pos, mass, eps=0.05):
    n = len(mass)
    acc = np.zeros_like(pos)
    for i in range(n):
        for j in range(i + 1, n):
            r = pos[j] - pos[i]
            inv = 1.0 / np.sqrt(r @ r + eps**2) ** 3
            acc[i] += mass[j] * inv * r
            acc[j] -= mass[i] * inv * r
    return acc


def f(pos, vel, mass):
    dt = 0.02
    acc = accelerations(pos, mass)
    for _ in range(5):
        vel += 0.5 * dt * acc
        pos += dt * vel
        acc = accelerations(pos, mass)
        vel += 0.5 * dt * acc
    energy = 0.0
    for i in range(len(mass)):
        energy += 0.5 * mass[i] * np.sum(vel[i] ** 2)
        for j in range(i):
            energy -= mass[i] * mass[j] / np.linalg.norm(pos[i] - pos[j])
    return energy + pos[0, 0]


def ARGS():
    rng = np.random.default_rng(6)
    return rng.normal(size=(3, 3)), 0.3 * rng.normal(size=(3, 3)), np.array([1.0, 0.5, 0.8])
