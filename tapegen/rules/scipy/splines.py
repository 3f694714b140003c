"""B-splines by their knots and coefficients (`scipy.interpolate`), with respect to both and to the points."""

from __future__ import annotations

import numpy as np
from scipy import interpolate

from tapegen.rules.helpers import as_float64, one_of, require
from tapegen.rules.registry import expands, fixed

_X = np.linspace(0.0, 3.0, 8)
_CURVE = interpolate.splrep(_X, np.sin(_X))
_KNOTS = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0])
_SURFACE = (_KNOTS, _KNOTS, np.cos(np.arange(16.0)), 2, 2)


def basis_at(t, c, k, x):
    """The splines with the columns of `c` as coefficients, at a vector of points (de Boor)."""
    interval = np.clip(np.searchsorted(t, x, side="right") - 1, k, np.size(t) - k - 2)
    d = np.zeros((k + 1, np.size(x), np.shape(c)[1]))
    for j in range(k + 1):
        d[j] = c[interval - k + j]
    for r in range(1, k + 1):
        for j in range(k, r - 1, -1):
            left = t[interval - k + j]
            share = np.reshape((x - left) / (t[interval + 1 + j - r] - left), (-1, 1))
            d[j] = (1.0 - share) * d[j - 1] + share * d[j]
    return d[k]


def spline_at(t, c, k, x, order):
    """The derivatives of an order of these splines."""
    for _ in range(order):
        n = np.shape(c)[0]
        c = k * (c[1:] - c[:-1]) / np.reshape(t[k + 1 : k + n] - t[1:n], (-1, 1))
        t = t[1:-1]
        k = k - 1
    return basis_at(t, c, k, x)


def curve_at(x, t, c, k, der, ext):
    c = as_float64(c)
    row = np.ravel(as_float64(x))
    first, last = t[k], t[np.size(t) - k - 1]
    inside = np.clip(row, first, last) if ext == 3 and der == 0 else row  # derivatives go on
    values = spline_at(t, np.reshape(c[: np.size(t) - k - 1], (-1, 1)), k, inside, der)[:, 0]
    if ext == 1:
        values = np.where((row < first) | (row > last), 0.0, values)
    if ext == 2 and np.any((row < first) | (row > last)):
        raise ValueError("Found x value not in the domain")
    return np.reshape(values, np.shape(x))


@expands(interpolate.splev, shapes=[(4,), fixed(_CURVE)], written=True)
def splev(x, tck, der=0, ext=0):
    require(not isinstance(tck, interpolate.BSpline), "splev of a BSpline has no rule.", "Pass spline.tck instead.")
    one_of("ext", ext, (0, 1, 2, 3))
    t, c, k = tck
    if not 0 <= der <= k:
        raise ValueError("0 <= der <= k must hold")
    if isinstance(c, list | tuple) and np.ndim(c[0]) > 0:
        return [curve_at(x, t, each, k, der, ext) for each in c]
    return curve_at(x, t, c, k, der, ext)


@expands(
    interpolate.bisplev,
    shapes=[fixed(np.array([-0.5, 0.3, 1.2, 1.7])), fixed(np.array([0.2, 0.9, 2.3])), fixed(_SURFACE)],
    written=True,
)
def bisplev(x, y, tck, dx=0, dy=0):
    """Outside of the knots it has the values at their ends."""
    require(np.ndim(x) <= 1 and np.ndim(y) <= 1, "bisplev takes vectors.", "Pass numbers or vectors.")
    tx, ty, c, kx, ky = tck
    if not (0 <= dx < kx and 0 <= dy < ky):
        raise ValueError("0 <= dx < kx and 0 <= dy < ky must hold")
    if np.any(np.diff(np.ravel(x)) < 0.0) or np.any(np.diff(np.ravel(y)) < 0.0):
        raise ValueError("Invalid input data")
    nx, ny = np.size(tx) - kx - 1, np.size(ty) - ky - 1
    across = np.clip(np.ravel(as_float64(x)), tx[kx], tx[nx])
    along = np.clip(np.ravel(as_float64(y)), ty[ky], ty[ny])
    rows = spline_at(tx, np.reshape(c[: nx * ny], (nx, ny)), kx, across, dx)
    values = spline_at(ty, rows.T, ky, along, dy).T
    if np.ndim(x) == 0 and np.ndim(y) == 0:
        return values[0, 0]
    if np.ndim(x) == 0:
        if np.size(y) == 1:
            raise ValueError("bisplev gives a number for vectors of one element, which has no rule: pass numbers")
        return values[0]
    if np.size(x) == 1:
        raise ValueError("bisplev gives fewer axes for a vector of one element, which has no rule: pass a number")
    return values
