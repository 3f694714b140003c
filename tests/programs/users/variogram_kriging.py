"""Ordinary kriging with a chosen variogram; distances by broadcasting, leave-one-out by deletion of rows."""

import numpy as np


def variogram(h, model, sill, rng, nugget=0.0):
    if model == "spherical":
        r = np.minimum(h / rng, 1.0)
        return nugget + sill * (1.5 * r - 0.5 * r**3)
    if model == "exponential":
        return nugget + sill * (1 - np.exp(-3 * h / rng))
    return nugget + sill * (1 - np.exp(-3 * (h / rng) ** 2))


def pairwise(a, b):
    diff = a[:, None, :] - b[None, :, :]
    return np.sqrt(np.sum(diff**2, axis=-1) + 1e-12)


def krige(xy, z, at, **kw):
    n = len(z)
    lhs = np.ones((n + 1, n + 1))
    lhs[:n, :n] = variogram(pairwise(xy, xy), **kw)
    lhs[n, n] = 0
    rhs = np.ones((n + 1, len(at)))
    rhs[:n] = variogram(pairwise(xy, at), **kw)
    w = np.linalg.solve(lhs, rhs)
    return w[:n].T @ z, np.einsum("ij,ij->j", w, rhs)


def f(z, sill, rng):
    xy = np.array([[0.0, 0.0], [1.0, 0.2], [0.4, 0.9], [1.3, 1.1], [0.1, 1.4]])
    score = 0.0
    for i in range(len(z)):
        keep = np.arange(len(z)) != i
        est, var = krige(xy[keep], z[keep], xy[i : i + 1], model="exponential" if i % 2 else "spherical", sill=sill, rng=rng, nugget=0.05)
        score += (est[0] - z[i]) ** 2 / var[0] + np.log(var[0])
    return score


ARGS = (np.array([1.2, 0.7, 1.9, 1.1, 2.3]), 1.1, 2.7)
