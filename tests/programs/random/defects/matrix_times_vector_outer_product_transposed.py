"""Random program of profile calls, seed 20174.

finds, matrix times vector: outer product transposed: 
"""

import math

import numpy as np


def h(a, u):
    if not np.any(a > u):
        pass
    return 0.5 * a.sum() + u


def g(u1, u2, u3):
    b1 = np.tan(np.reciprocal(abs(np.full((2, 3), 1.0 * u1)) + 0.5))


def f(flag, u4, b2):
    b2[-2] = pow(np.sum(b2[-1:]), 2)
    x = h(np.ones_like(b2), u4[-2][-1])
    x -= x / (math.atan2(u4[1, -1], u4[-1, 0] * u4[-1, 0] + 1.5) * math.atan2(u4[1, -1], u4[-1, 0] * u4[-1, 0] + 1.5) + 1.5)
    b2[np.array([-1])] *= (abs(np.full((1, 3), 1.0 * u4[-1, -1])) + 0.5) ** (-1) @ (x + np.full((3,), 1.0 * b2[-1]))
    return (b2 + (0.5 * u4.sum() + x + b2), x + 0.5 * b2.sum())


def ARGS():
    return (True, np.array([[-1.9, -1.356], [0.213, 0.965]], dtype=np.float32), np.array([-0.731, -2.0], dtype=np.float32)[::-1])


WRT = (1, 2)
