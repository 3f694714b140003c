"""One bool as an index, of arrays and of numbers of NumPy: all or nothing, with one more axis in front."""

import numpy as np


def latitude(x, y):
    """Code for arrays that gets numbers."""
    x, y = np.asarray(x), np.asarray(y)
    r = np.sqrt(x**2 + y**2)
    beta = np.empty_like(r)
    bad = np.isclose(r, 0.0) | np.isclose(x, 0.0)
    beta[~bad] = np.arctan(r[~bad] / x[~bad])
    beta[~bad] += np.sin(beta[~bad]) / r[~bad]
    beta[bad] = np.pi / 2 + y
    return beta, np.where(beta >= 10.0, 0.0, beta)


def isometric(x):
    lat = np.arcsinh(np.tan(x))
    at_pole = abs(np.cos(x)) <= 1e-9
    try:
        lat[at_pole] = np.sign(x[at_pole]) * np.inf
    except TypeError:
        if at_pole:
            lat = np.sign(x) * np.inf
    try:
        return lat.squeeze()[()]
    except AttributeError:
        return lat


def f(a, x, y):
    chosen = a.sum() > x
    picked = a[chosen] * a[a[0] > 100.0].sum()
    kept = a.copy()
    kept[chosen] = 2.0 * a * x
    kept[not chosen] = 0.0
    kept[x > y] += a[None] * y
    kept[x < y] *= 3.0
    first, second = latitude(x, y)
    zero, _ = latitude(0.0 * x, y)
    return kept, picked, kept[chosen], first, second, zero, isometric(np.sin(x)), np.sin(y)[None], np.cos(y)[...]


ARGS = (np.array([0.4, 0.9, 1.3]), 0.8, 0.3)
