"""Pairs as keys: of a dict, in a comprehension, and of a class with `__getitem__` and `__setitem__`."""

import numpy as np


class Grid:
    def __init__(self, values, columns):
        self.values = values
        self.columns = columns

    def __getitem__(self, key):
        i, j = key
        return self.values[i * self.columns + j]

    def __setitem__(self, key, value):
        i, j = key
        self.values[i * self.columns + j] = value


def at_top(x):
    table = {(i, j): x[i] * x[j] for i in range(2) for j in range(2)}
    table[0, 1] *= 3.0
    table[1, 2] = x[2]
    table[1, 3] = x[3]
    return sum(table.values()) * table[(1, 2)] + table[1, 3] * len(table)


def in_for(x):
    grid = Grid(x.copy(), 2)
    for k in range(2):
        grid[1, k] += grid[0, k] * x[k]
        grid[0, k] = grid[1, 1 - k]
    return np.sum(grid.values**2)


def in_branch(x):
    cells = {(a, b): [0.0, 0.0] for a in (False, True) for b in (False, True)}
    for key in cells:
        if (x[0] > 0) == key[0] and (x[3] > 0) == key[1]:
            cells[key][0] += x[1]
            cells[key][1] += x[2]
    total = 0.0
    for (a, b), (first, second) in cells.items():
        total += (a + 2 * b + 1) * first * second
    return total


def ARGS():
    return (np.array([1.3, 0.4, 2.2, -0.7]),)
