"""A truss under load with large displacements: assembly by indices, Newton steps, load increments."""

import numpy as np

NODES = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.5, 0.8], [1.5, 0.8]])
BARS = [(0, 1), (1, 2), (0, 3), (3, 1), (1, 4), (4, 2), (3, 4)]
FIXED = {0, 1, 5}


class Truss:
    def __init__(self, areas, young):
        self.areas = areas
        self.young = young
        self.u = np.zeros(2 * len(NODES))
        self.lengths = [np.hypot(*(NODES[j] - NODES[i])) for i, j in BARS]

    def bar(self, k):
        i, j = BARS[k]
        dofs = np.array([2 * i, 2 * i + 1, 2 * j, 2 * j + 1])
        x = NODES.reshape(-1)[dofs] + self.u[dofs]
        d = x[2:] - x[:2]
        length = np.linalg.norm(d)
        n = d / length
        strain = (length**2 - self.lengths[k] ** 2) / (2 * self.lengths[k] ** 2)
        force = self.young * self.areas[k] * strain * length / self.lengths[k]
        axis = np.concatenate((-n, n))
        material = self.young * self.areas[k] * (length / self.lengths[k]) ** 2 / self.lengths[k]
        block = np.eye(4) - np.roll(np.eye(4), 2, axis=0)
        return dofs, force * axis, material * np.outer(axis, axis) + force / length * block, strain

    def assemble(self):
        n = len(self.u)
        K, r = np.zeros((n, n)), np.zeros(n)
        energy = 0.0
        for k in range(len(BARS)):
            dofs, force, stiff, strain = self.bar(k)
            K[np.ix_(dofs, dofs)] += stiff
            np.add.at(r, dofs, force)
            energy += 0.5 * self.young * self.areas[k] * self.lengths[k] * strain**2
        return K, r, energy


def f(areas, young, load):
    truss = Truss(areas, young)
    free = [d for d in range(2 * len(NODES)) if d not in FIXED]
    external = np.zeros(2 * len(NODES))
    for increment in (0.5, 1.0):
        external[[3, 7]] = -increment * load
        for _ in range(4):
            K, r, energy = truss.assemble()
            out = (external - r)[free]
            if np.abs(out).max() < 1e-10:
                break
            truss.u[free] += np.linalg.solve(K[np.ix_(free, free)], out)
    volume = sum(a * l for a, l in zip(areas, truss.lengths))
    return -external @ truss.u + energy + 0.1 * volume


ARGS = (np.array([1.0, 1.2, 0.9, 0.7, 0.7, 0.9, 1.1]), 20.0, 1.5)
TOL = 1e-6
UNCOMPILED = "too long: its bars are written out"
