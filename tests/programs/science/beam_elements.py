"""Euler-Bernoulli beam: assembly of element matrices, boundary conditions by elimination, tip deflection and compliance."""
import numpy as np


def element(EI, L):
    return EI / L**3 * np.array([
        [12.0, 6 * L, -12.0, 6 * L],
        [6 * L, 4 * L * L, -6 * L, 2 * L * L],
        [-12.0, -6 * L, 12.0, -6 * L],
        [6 * L, 2 * L * L, -6 * L, 4 * L * L],
    ])


def f(EI, lengths, load):
    n = len(EI)
    K = np.zeros((2 * n + 2, 2 * n + 2))
    F = np.zeros(2 * n + 2)
    for e in range(n):
        dofs = np.arange(2 * e, 2 * e + 4)
        K[np.ix_(dofs, dofs)] += element(EI[e], lengths[e])
        L = lengths[e]
        F[dofs] += load * L / 2.0 * np.array([1.0, L / 6.0, 1.0, -L / 6.0])
    free = [k for k in range(2 * n + 2) if k not in (0, 1)]
    u = np.zeros(2 * n + 2)
    u[free] = np.linalg.solve(K[np.ix_(free, free)], F[free])
    return u[-2] + 0.5 * F @ u


ARGS = (np.array([2.0, 1.5, 1.0]), np.array([0.5, 0.7, 0.4]), 0.3)
