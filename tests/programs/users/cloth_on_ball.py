"""Mass-spring cloth: edges in a dict of kinds, semi-implicit Euler, pinned corners, a ball it slides off."""
import numpy as np

def edges(n, m):
    out = {"stretch": [], "shear": []}
    for i in range(n):
        for j in range(m):
            k = i * m + j
            if j + 1 < m:
                out["stretch"].append((k, k + 1))
            if i + 1 < n:
                out["stretch"].append((k, k + m))
            if i + 1 < n and j + 1 < m:
                out["shear"].append((k, k + m + 1))
                out["shear"].append((k + 1, k + m))
    return {kind: np.array(pairs) for kind, pairs in out.items()}

def f(stiff, mass, centre):
    n = m = 3
    E = edges(n, m)
    gy, gx = np.mgrid[0:n, 0:m]
    x = np.column_stack([gx.ravel() * 0.5, gy.ravel() * 0.5, np.zeros(n * m)])
    rest = {k: np.linalg.norm(x[e[:, 0]] - x[e[:, 1]], axis=1) for k, e in E.items()}
    v = np.zeros_like(x)
    free = np.ones(n * m, dtype=bool)
    free[[0, m - 1]] = False
    for step in range(5):
        force = np.tile(np.array([0.0, 0.0, -9.8]) * mass, (n * m, 1))
        for kind, e in E.items():
            d = x[e[:, 1]] - x[e[:, 0]]
            L = np.linalg.norm(d, axis=1, keepdims=True)
            fe = stiff[kind] * (L - rest[kind][:, None]) * d / L
            np.add.at(force, e[:, 0], fe)
            np.subtract.at(force, e[:, 1], fe)
        v[free] += 0.05 * force[free] / mass
        v *= 0.99
        x += 0.05 * v
        away = x - centre
        r = np.sqrt(np.sum(away**2, 1))
        hit = r < 0.4
        if hit.any():
            x[hit] = centre + 0.4 * away[hit] / r[hit, None]
            v[hit] = 0
    return float(np.sum(x[:, 2]) + 0.5 * np.sum(v**2))

ARGS = ({"stretch": 60.0, "shear": 25.0}, 0.1, np.array([0.55, 0.5, -0.45]))
TOL = 1e-6
