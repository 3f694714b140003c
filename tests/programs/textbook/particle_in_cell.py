"""Charge deposited on a grid with linear weights, Poisson solved by cumulative sums, field gathered back."""
import numpy as np


def f(x, q):
    cells = 6
    rho = np.zeros(cells)
    for p in range(len(x)):
        cell = int(np.floor(x[p]))
        w = x[p] - cell
        rho[cell % cells] += q[p] * (1 - w)
        rho[(cell + 1) % cells] += q[p] * w
    rho -= rho.mean()
    field = np.cumsum(rho)
    field -= field.mean()
    energy = 0.0
    for p in range(len(x)):
        cell = int(np.floor(x[p]))
        w = x[p] - cell
        energy += q[p] * ((1 - w) * field[cell % cells] + w * field[(cell + 1) % cells]) ** 2
    return energy


def ARGS():
    return np.array([0.3, 1.8, 2.4, 4.6, 5.7]), np.array([1.0, 0.7, -0.5, 1.2, 0.4])
