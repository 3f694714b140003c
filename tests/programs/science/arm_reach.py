"""Inverse kinematics: a chain of frames multiplied by functools.reduce, a distance and an angle."""

import math
from functools import reduce

import numpy as np

DH = [(0.0, np.pi / 2, 0.3), (0.4, 0.0, 0.0), (0.35, 0.0, 0.05)]

def dh_matrix(theta, a, alpha, d):
    ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array([
        [ct, -st * ca, st * sa, a * ct],
        [st, ct * ca, -ct * sa, a * st],
        [0, sa, ca, d],
        [0, 0, 0, 1],
    ])

def f(q, target):
    T = reduce(np.matmul, [dh_matrix(th, *link) for th, link in zip(q, DH, strict=True)], np.eye(4))
    pos, R = T[:3, 3], T[:3, :3]
    err = pos - np.asarray(target)
    angle = math.acos(max(-1.0, min(1.0, (np.trace(R) - 1) / 2)))
    return err @ err + 0.1 * angle**2

WRT = (0,)
ARGS = (np.array([0.3, -0.7, 0.5]), (0.4, 0.2, 0.5))
