"""A chain of masses and springs by Verlet integration, one end fixed, with a collision at the floor."""
import numpy as np


def f(y, stiffness, gravity):
    n = y.size
    old = y.copy()
    dt = 0.05
    for step in range(20):
        force = np.full(n, -gravity)
        for i in range(n - 1):
            stretch = y[i] - y[i + 1] - 0.5
            force[i] -= stiffness * stretch
            force[i + 1] += stiffness * stretch
        new = 2 * y - old + dt**2 * force
        new[0] = y[0]
        new[new < -2.0] = -2.0
        old, y = y, new
    return np.sum((y - old) ** 2) / dt**2 + y[-1]


def ARGS():
    return np.array([0.0, -0.4, -1.1, -1.3]), 30.0, 9.81


TOL = 1e-6
