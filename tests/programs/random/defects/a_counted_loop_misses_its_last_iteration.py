"""Random program of profile overwrite, seed 1.

finds, a counted loop misses its last iteration: 
"""

import math

import numpy as np


SCALE = -0.781
TABLE = np.array([-1.514, 0.134, 0.5])


def g(a, a1, a2):
    pass


def f(w, u):
    for c in (0.25, 0.125):
        w[-2] = np.sum(TABLE * np.full((3,), 1.0 * TABLE[-2])) ** 2.0
        for k in range(len(w)):
            k1 = 0
            while k1 < 1 and w[k] < c / u[k - 1] <= c:
                k1 += 1
                for u1, v in zip(u, TABLE):
                    u = u[::-1] * TABLE / (1.0 + abs(u[::-1] * TABLE))
                    w[...] = w[::-1]
    return w


def ARGS():
    return (np.array([-0.89, 1.025, -0.996]), np.array([-1.5, -1.0, -0.389]))


WRT = (0, 1)
