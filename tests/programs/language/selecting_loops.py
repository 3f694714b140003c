"""Loops that keep the best of their candidates: ties, no winner, candidates made in the branch, several per trip."""

import numpy as np


def at_top(x, y):
    best = -10.0
    where = -1
    for k in range(x.size):
        score = x[k] - y[k % 3]
        if score > best:
            best = score
            where = k
    worst = x[0]
    for k in range(7, 0, -2):
        if not x[k] < worst:
            pass
        else:
            worst = x[k]
    return best * best + worst * y[where % 3] + x[where]


def in_for(x, y):
    table = np.zeros((5, 5))
    for i in range(4, -1, -1):
        for j in range(i, 5):
            best = x[i] * y[j % 3]
            for k in range(i, j):
                both = table[i, k] + table[k + 1, j] - x[k]
                if both >= best:
                    best = both
            table[i, j] = best
    return table[0, 4] + table[1, 3] * table[2, 4]


def in_while(x, y):
    total = 0.0
    n = 0
    while n < 4:
        low = y[0]
        for k in range(n, 2 * n):
            if x[k] < low:
                low = x[k]
        total += low * low * y[1]
        n += 1
    return total


def in_branch(x, y):
    total = 0.0
    for i in range(6):
        if x[i] > 0.0:
            top = -1.0
            for k in range(i):
                if x[k] * 1.0 > top and k != 2:
                    top = x[k] + y[2]
            total += top * x[i]
        else:
            total -= x[i] * x[i]
    return total


ARGS = (np.array([0.4, -0.3, 0.8, 0.6, -0.2, 0.9, 0.5, 0.7, 0.1]), np.array([0.55, -0.7, 1.1]))
