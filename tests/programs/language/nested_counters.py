"""Integers that count through nested loops, with steps, starts and loops around that change them."""

import numpy as np


def at_top(x, y):
    total = 0.0
    packed = 0
    for i in range(4):
        for j in range(i):
            total += x[packed] * y[j] * x[packed]
            packed += 1
    return total * x[packed]


def in_for(x, y):
    total = 1.0
    k = 7
    for i in range(3):
        low = k
        while low > 1:
            total = total * (1.0 + 0.1 * x[low] * y[i])
            low -= 2
        k -= i
    return total * y[k - 2]


def in_while(x, y):
    total = 0.0
    first = 1
    rounds = 0
    while rounds < 3:
        k = first
        for j in range(2, 5):
            total += np.sin(x[k] * y[j - 2]) * total
            total += x[k]
            k += 1
        if total > 0.5:
            first = k - 3
        else:
            first += 1
        rounds += 1
    return total * x[first]


def in_branch(x, y):
    total = 0.0
    k = 0
    for i in range(5):
        if x[i] > 0.0:
            for j in range(i):
                total += x[k] * x[k] * y[j % 3]
                k += 1
        else:
            k = i
    return total + x[k % 7] ** 2


ARGS = (np.array([0.4, -0.3, 0.8, 0.6, -0.2, 0.9, 0.5, 0.7, 0.1]), np.array([0.5, -0.7, 1.1]))
