"""A rectifier with a smoothing capacitor: modified nodal analysis, trapezoidal steps, Newton for the diodes."""

import numpy as np

NETLIST = [
    ("R", 0, 1, "load"),
    ("C", 0, 1, "smooth"),
    ("D", 2, 1, None),
    ("R", 2, 3, "source"),
    ("D", 0, 2, None),
]


def diode(v, isat, vt=0.05):
    if v > 0.9:
        edge = isat * np.exp(0.9 / vt)
        return edge * (1 + (v - 0.9) / vt) - isat, edge / vt
    return isat * (np.exp(v / vt) - 1), isat / vt * np.exp(v / vt)


def stamp(G, i, j, g):
    for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
        if a and b:
            G[a - 1, b - 1] += sign * g


def step(v, drive, values, dt, isat):
    old = v.copy()
    for _ in range(25):
        G = np.zeros((3, 3))
        rhs = np.zeros(3)
        for kind, i, j, name in NETLIST:
            vi = v[i - 1] if i else 0.0
            vj = v[j - 1] if j else 0.0
            if kind == "R":
                g, current = 1 / values[name], (vi - vj) / values[name]
            elif kind == "C":
                before = (old[i - 1] if i else 0.0) - (old[j - 1] if j else 0.0)
                g = values[name] / dt
                current = g * (vi - vj - before)
            else:
                current, g = diode(vi - vj, isat)
            stamp(G, i, j, g)
            if i:
                rhs[i - 1] -= current
            if j:
                rhs[j - 1] += current
        G[2, :] = 0.0
        G[2, 2] = 1.0
        rhs[2] = drive - v[2]
        delta = np.linalg.solve(G, rhs)
        scale = min(1.0, 0.5 / (np.abs(delta).max() + 1e-12))
        v = v + scale * delta
        if np.abs(delta).max() < 1e-11:
            break
    return v


def f(values, amplitude, log_isat):
    isat = 10.0**log_isat
    v = np.zeros(3)
    dt, ripple = 0.02, []
    for n in range(1, 13):
        v = step(v, amplitude * np.sin(2 * np.pi * n * dt * 2), values, dt, isat)
        if n > 6:
            ripple.append(v[0])
    return max(ripple) - min(ripple) + np.mean(ripple)


ARGS = ({"load": 2.0, "smooth": 0.1, "source": 0.05}, 3.0, -6.0)
TOL = 1e-6
