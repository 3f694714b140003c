"""Find what a plate is made of from how it cools, with the plate cut into strips for the ranks of MPI.

Each rank marches its rows of the plate, and exchanges the rows at its edges with its neighbours in every time step. The
gradient by the conductivity of every cell sends cotangents the other way. Every rank runs the same optimizer on the
whole plate, with values that are summed and gradients that are gathered over the ranks.

Run it: `mpiexec -n 4 python examples/heat_mpi.py`, with any number of ranks up to that of the rows.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from scipy.optimize import minimize

import tapegen as tg

ROWS, COLUMNS = 24, 16
STEPS = 15
ITERATIONS = 150

comm = MPI.COMM_WORLD
above = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
below = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL
MINE = slice(ROWS * comm.rank // comm.size, ROWS * (comm.rank + 1) // comm.size)


def exchange(w):
    """Fill the first and the last row with those of the neighbours; at the edges of the plate they stay."""
    comm.Sendrecv(w[1], above, 1, w[-1], below, 1)
    comm.Sendrecv(w[-2], below, 2, w[0], above, 2)


def march(start, k):
    """The temperatures after some time: explicit steps, cold edges."""
    w = np.zeros((start.shape[0] + 2, COLUMNS + 2))
    w[1:-1, 1:-1] = start
    for _ in range(STEPS):
        exchange(w)
        neighbours = w[:-2, 1:-1] + w[2:, 1:-1] + w[1:-1, :-2] + w[1:-1, 2:]
        w[1:-1, 1:-1] += k * (neighbours - 4.0 * w[1:-1, 1:-1])
    return w[1:-1, 1:-1].copy()


def misfit(k, start, measured):
    """What this rank adds to the misfit."""
    return np.sum((march(start, k) - measured) ** 2)


def plate():
    """Starting temperatures and conductivities: a good conductor with a bad one in it."""
    i, j = np.mgrid[:ROWS, :COLUMNS]
    start = 1.0 + np.cos(0.9 * i) * np.cos(1.1 * j + 0.5)
    inside = (i - 10.0) ** 2 + (j - 7.0) ** 2 < 16.0
    return start[MINE], np.where(inside, 0.1, 0.2)[MINE]


def main():
    """Find the conductivity of each cell; every rank returns the same."""
    start, true = plate()
    measured = march(start, true)
    gradient_of = tg.value_and_grad(misfit)

    def objective(x):
        value, gradient = gradient_of(x.reshape(ROWS, COLUMNS)[MINE].copy(), start, measured)
        strips = comm.allgather(gradient)  # of different heights
        return comm.allreduce(value), np.concatenate(strips).ravel()

    x = np.full(ROWS * COLUMNS, 0.2)
    _, first = objective(x)
    options = {"maxiter": ITERATIONS}
    found = minimize(objective, x, jac=True, method="L-BFGS-B", bounds=[(0.05, 0.24)] * x.size, options=options)
    error = np.abs(found.x.reshape(ROWS, COLUMNS)[MINE] - true)
    wrong = comm.allreduce(int(np.sum(error > 0.03)))
    return {"misfit": float(found.fun), "wrong": wrong, "slope": float(np.linalg.norm(first))}


if __name__ == "__main__":
    result = main()
    if comm.rank == 0:
        print(
            f"{comm.size} ranks: misfit {result['misfit']:.2e}, {result['wrong']} of {ROWS * COLUMNS} cells are wrong"
        )
        print(f"length of the first gradient: {result['slope']:.12f}")
