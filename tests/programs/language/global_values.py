"""Globals: numbers, arrays, tuples."""
import numpy as np

G = 9.81
WEIGHTS = np.array([0.2, 0.5, 0.3])
NODES = (-0.77, 0.0, 0.77)
LIMIT = 3


def at_top(a, x):
    return G * x + np.sum(WEIGHTS * a) * NODES[0]


def in_for(a, x):
    s = 0.0
    for i in range(LIMIT):
        s += WEIGHTS[i] * np.exp(NODES[i] * x) * a[i]
    return s


def in_while(a, x):
    while x < G:
        x = x * (1.0 + WEIGHTS[1])
    return x * a[0]


def in_branch(a, x):
    if x < G:
        x = x * np.pi
    return x * np.dot(WEIGHTS, a)


def ARGS():
    return np.array([0.9, 1.4, 0.6]), 1.2
