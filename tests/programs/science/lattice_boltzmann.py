"""Lattice Boltzmann D2Q9: collide, stream with np.roll, bounce back at a mask."""
import numpy as np

C = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
W = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
OPPOSITE = [0, 3, 4, 1, 2, 7, 8, 5, 6]

def equilibrium(rho, ux, uy):
    feq = np.empty((9,) + rho.shape)
    usq = 1.5 * (ux**2 + uy**2)
    for i in range(9):
        cu = 3.0 * (C[i, 0] * ux + C[i, 1] * uy)
        feq[i] = W[i] * rho * (1.0 + cu + 0.5 * cu**2 - usq)
    return feq

def f(rho, omega, force):
    solid = np.zeros(rho.shape, dtype=bool)
    solid[0, :] = True
    g = equilibrium(rho, 0.05 * np.ones_like(rho), np.zeros_like(rho))
    for _ in range(2):
        density = g.sum(axis=0)
        ux = np.sum(C[:, 0, None, None] * g, axis=0) / density + force
        uy = np.sum(C[:, 1, None, None] * g, axis=0) / density
        g += omega * (equilibrium(density, ux, uy) - g)
        for i in range(9):
            g[i] = np.roll(np.roll(g[i], C[i, 0], axis=0), C[i, 1], axis=1)
        bounced = g[OPPOSITE]
        g = np.where(solid, bounced, g)
    return np.sum(g[1] ** 2) + np.sum(g[5] * g[3])

ARGS = (np.linspace(0.9, 1.2, 12).reshape(3, 4), 1.1, 0.02)
