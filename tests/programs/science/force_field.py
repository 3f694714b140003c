"""A small molecule: bonds, angles, dihedrals, Lennard-Jones with exclusions, from tables of tuples."""
import numpy as np


def angle(a, b, c):
    u, v = a - b, c - b
    return np.arccos(u @ v / (np.linalg.norm(u) * np.linalg.norm(v)))


def dihedral(p0, p1, p2, p3):
    b0, b1, b2 = p0 - p1, p2 - p1, p3 - p2
    b1 = b1 / np.sqrt(np.dot(b1, b1))
    v = b0 - np.dot(b0, b1) * b1
    w = b2 - np.dot(b2, b1) * b1
    return np.arctan2(np.dot(np.cross(b1, v), w), np.dot(v, w))


BONDS = [(0, 1), (1, 2), (2, 3), (3, 4)]
ANGLES = [(0, 1, 2), (1, 2, 3), (2, 3, 4)]
TORSIONS = [(0, 1, 2, 3, 3), (1, 2, 3, 4, 2)]


def f(xyz, k_bond, r0, eps):
    energy = 0.0
    for i, j in BONDS:
        energy += k_bond * (np.linalg.norm(xyz[i] - xyz[j]) - r0) ** 2
    for i, j, k in ANGLES:
        energy += 0.5 * (angle(xyz[i], xyz[j], xyz[k]) - 1.91) ** 2
    for i, j, k, l, fold in TORSIONS:
        energy += 0.3 * (1.0 + np.cos(fold * dihedral(xyz[i], xyz[j], xyz[k], xyz[l])))
    excluded = {(i, j) for i, j in BONDS} | {(i, k) for i, _, k in ANGLES}
    n = len(xyz)
    for i in range(n):
        for j in range(i + 1, n):
            if (i, j) in excluded:
                continue
            r2 = ((xyz[i] - xyz[j]) ** 2).sum()
            s6 = (0.8 / r2) ** 3
            energy += 4.0 * eps * (s6 * s6 - s6)
    return energy


ARGS = (np.array([[0.0, 0.0, 0.0], [1.0, 0.2, 0.1], [1.5, 1.1, -0.2], [2.5, 1.2, 0.3], [2.9, 2.1, 0.9]]), 3.0, 1.05, 0.2)
