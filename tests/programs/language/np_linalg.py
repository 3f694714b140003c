"""solve, inv, det, slogdet, cholesky, norm."""
import numpy as np


def at_top(m, b):
    spd = m @ m.T + np.eye(3)
    x = np.linalg.solve(spd, b)
    low = np.linalg.cholesky(spd)
    sign, logdet = np.linalg.slogdet(spd)
    return x @ b + np.linalg.det(m) + np.sum(np.linalg.inv(spd) ** 2) + np.sum(low * m) + logdet + np.linalg.norm(b)


def in_for(m, b):
    for i in range(3):
        b = np.linalg.solve(m + 3.0 * np.eye(3), b) + b
    return np.linalg.norm(b)


def in_while(m, b):
    while np.linalg.norm(b) > 0.3:
        b = np.linalg.inv(m + 2.0 * np.eye(3)) @ b
    return np.sum(b)


def in_branch(m, b):
    if np.linalg.det(m) != 0.0:
        m = np.linalg.solve(m, m * m + np.eye(3))
    return np.sum(np.linalg.norm(m, axis=1)) + np.linalg.norm(m)


def ARGS():
    return np.array([[0.7, 1.2, 0.4], [1.1, 0.3, 0.9], [0.2, 0.8, 1.5]]), np.array([0.9, 1.4, 0.6])
