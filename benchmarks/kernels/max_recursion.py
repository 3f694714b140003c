"""Best nesting of pairs in a sequence (Nussinov's recursion): branches, and which one won."""

import numpy as np

FIRST, GOAL = 1.5, 1.1
WRT = (0,)


def f(score):
    n = score.shape[0]
    table = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            best = table[i, j - 1]
            if table[i + 1, j] > best:
                best = table[i + 1, j]
            paired = score[i, j]
            if i + 1 < j:
                paired += table[i + 1, j - 1]
            if paired > best:
                best = paired
            for k in range(i + 1, j):
                both = table[i, k] + table[k + 1, j]
                if both > best:
                    best = both
            table[i, j] = best
    return table[0, n - 1]


def args(n=150):
    return (np.random.default_rng(0).normal(size=(n, n)),)


def small():
    return args(6)
