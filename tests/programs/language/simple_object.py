"""A plain class: constants in attributes, a method of self, another object inside."""
import numpy as np


class Grid:
    def __init__(self, n, h):
        self.n = n
        self.h = h

    def laplacian(self, u, i):
        return (u[i + 1] - 2.0 * u[i] + u[i - 1]) / self.h**2


class Solver:
    def __init__(self, grid, kappa):
        self.grid = grid
        self.kappa = kappa

    def step(self, u, dt):
        new = u.copy()
        for i in range(1, self.grid.n - 1):
            new[i] = u[i] + dt * self.kappa * self.grid.laplacian(u, i)
        return new


SOLVER = Solver(Grid(6, 0.4), 0.5)


def f(u, dt):
    for _ in range(3):
        u = SOLVER.step(u, dt)
    return np.sum(u * u)


def ARGS():
    return np.array([0.0, 0.8, 1.4, 0.9, 0.3, 0.1]), 0.07
