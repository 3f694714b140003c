"""Moments of particles by quadrant in a dictionary of lists, and forces from far quadrants."""
import numpy as np

def quadrant(p):
    return (p[0] > 0, p[1] > 0)

def f(pos, mass):
    cells = {(a, b): [0.0, 0.0, 0.0] for a in (False, True) for b in (False, True)}
    for i in range(len(mass)):
        for key in cells:
            if (pos[i, 0] > 0) == key[0] and (pos[i, 1] > 0) == key[1]:
                m = cells[key]
                m[0] += mass[i]
                m[1] += mass[i] * pos[i, 0]
                m[2] += mass[i] * pos[i, 1]
    energy = 0.0
    for i in range(len(mass)):
        for key, (m, mx, my) in cells.items():
            if m > 0.0:
                dx, dy = pos[i, 0] - mx / m, pos[i, 1] - my / m
                energy -= mass[i] * m / np.sqrt(dx * dx + dy * dy + 0.05)
    return energy

ARGS = (
    np.array([[0.5, 0.7], [-0.4, 0.2], [-0.9, -0.3], [0.8, -0.6], [0.1, 0.9]]),
    np.array([1.0, 0.5, 0.8, 1.2, 0.4]),
)
