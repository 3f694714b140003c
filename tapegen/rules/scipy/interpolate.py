"""Interpolation (`scipy.interpolate`), differentiable by data points and evaluation points.

Interpolants made in a program use the formulas of scipy; those made outside of a program are evaluated as they are.
"""

from __future__ import annotations

import numpy as np
from scipy import interpolate, linalg

from tapegen.rules.helpers import as_float64, one_of, require
from tapegen.rules.registry import expands


def in_place(values, points, axis):
    """Move the axes of the evaluation points, which come first in `values`, to the axis of the interpolant."""
    if axis == 0 or np.ndim(points) == 0:
        return values
    first = tuple(range(np.ndim(points)))
    return np.moveaxis(values, first, tuple(axis + k for k in first))


def along(row, rank):
    """A vector along the first axis of an array."""
    return np.reshape(row, (-1, *(1,) * (rank - 1)))


def fall_outside(x, points):
    return (points < x[0]) | (points > x[np.size(x) - 1])


# ---- piecewise polynomials -------------------------------------------------------------------------------------------

# attributes in which versions of scipy store coefficients and breakpoints
_CURVE = interpolate.PPoly([[0.0]], [0.0, 1.0])
_DELEGATES = hasattr(_CURVE, "_delegate_to")
_C, _X = ("_c", "_x") if hasattr(_CURVE, "_c") else ("c", "x")


def held(curve):
    """The object that holds the arrays of an interpolant."""
    return curve._delegate_to if _DELEGATES else curve


class Cubic:
    """A cubic spline made in a program."""

    __tapegen_inside__ = "a scipy.interpolate.CubicSpline"

    def __init__(self, c, x, extrapolate, axis):
        self.c, self.x, self.extrapolate, self.axis = c, x, extrapolate, axis

    def __call__(self, x, nu=0, extrapolate=None):
        if extrapolate is None:
            extrapolate = self.extrapolate
        return polynomials_at(self.c, self.x, x, nu, extrapolate, self.axis)

    def integrate(self, a, b, extrapolate=None):
        if extrapolate is None:
            extrapolate = self.extrapolate
        return integral_between(self.c, self.x, a, b, extrapolate)

    def derivative(self, nu=1):
        require(False, "CubicSpline.derivative has no rule.", "Call the spline with the order: spline(x, 1).")

    def antiderivative(self, nu=1):
        require(False, "CubicSpline.antiderivative has no rule.", "Call spline.integrate(a, b).")

    def roots(self, discontinuity=True, extrapolate=None):
        require(False, "CubicSpline.roots has no rule.", "Use scipy.optimize.brentq of the spline.")

    def solve(self, y=0.0, discontinuity=True, extrapolate=None):
        require(False, "CubicSpline.solve has no rule.", "Use scipy.optimize.brentq of the spline.")


@expands(interpolate.PPoly.integrate, written=True)
def integral_of_polynomials(self, a, b, extrapolate=None):
    require(isinstance(self, interpolate.PPoly), "curves of this kind have no rule.", "Use a CubicSpline.")
    curve = held(self)
    if extrapolate is None:
        extrapolate = curve.extrapolate
    return integral_between(getattr(curve, _C), getattr(curve, _X), a, b, extrapolate)


def integral_between(c, x, a, b, extrapolate):
    """The integral of the polynomials of the intervals from a to b."""
    require(extrapolate != "periodic", "integrals of periodic curves have no rule.", "Use scipy.integrate.quad.")
    order = np.shape(c)[0]
    c = c / along(np.arange(order, 0, -1), np.ndim(c))
    whole = np.zeros(np.shape(c)[1:])
    for j in range(order):
        whole += c[j] * along(np.diff(x), np.ndim(whole)) ** (order - j)
    before = np.concatenate((np.zeros((1,) + np.shape(whole)[1:]), np.cumsum(whole, axis=0)[:-1]))
    c = np.concatenate((c, np.expand_dims(before, 0)))
    return polynomials_at(c, x, b, 0, extrapolate, 0) - polynomials_at(c, x, a, 0, extrapolate, 0)


@expands(interpolate.PPoly.__call__, written=True)
def call_of_polynomials(self, x, nu=0, extrapolate=None):
    require(isinstance(self, interpolate.PPoly), "curves of this kind have no rule.", "Use a CubicSpline.")
    curve = held(self)
    if extrapolate is None:
        extrapolate = curve.extrapolate
    return polynomials_at(getattr(curve, _C), getattr(curve, _X), x, nu, extrapolate, curve.axis)


def polynomials_at(c, x, points, nu, extrapolate, axis):
    """The polynomials of the intervals [x[k], x[k + 1]), or their derivatives of order `nu`."""
    require(nu >= 0, "antiderivatives of splines have no rule.", "Use scipy.integrate.quad of the spline.")
    points = as_float64(points)
    row = np.ravel(points)
    last = np.size(x) - 1
    if x[last] < x[0]:
        raise ValueError("the points of the curve decrease")
    if extrapolate == "periodic":
        row = x[0] + (row - x[0]) % (x[last] - x[0])
    k = np.clip(np.searchsorted(x, row, side="right") - 1, 0, last - 1)
    s = np.reshape(row - x[k], (-1, 1))
    terms = np.reshape(c, (np.shape(c)[0], np.shape(c)[1], -1))
    values = np.zeros((np.size(row), np.shape(terms)[2]))
    power = np.ones((np.size(row), 1))
    for j in range(nu, np.shape(c)[0]):
        factor = 1.0
        for i in range(nu):
            factor = factor * (j - i)
        values += factor * terms[np.shape(c)[0] - 1 - j][k] * power
        power *= s
    if extrapolate is False:
        values = np.where(np.reshape(fall_outside(x, row), (-1, 1)), np.nan, values)
    values = np.reshape(values, np.shape(points) + np.shape(c)[2:])
    return in_place(values, points, axis)


def end_condition(bc):
    """A condition by name, or as the order of a derivative and its value."""
    if isinstance(bc, tuple):
        return bc
    one_of("bc_type", bc, ("not-a-knot", "natural", "clamped"))
    if bc == "natural":
        return (2, 0.0)
    if bc == "clamped":
        return (1, 0.0)
    return bc


@expands(interpolate.CubicSpline, written=True)
def cubic_spline(x, y, axis=0, bc_type="not-a-knot", extrapolate=None):
    x = as_float64(x)
    axis = axis % np.ndim(as_float64(y))
    y = np.copy(np.moveaxis(as_float64(y), axis, 0))
    if isinstance(bc_type, str):
        bc_type = (bc_type, bc_type)
    slopes = spline_slopes(x, y, end_condition(bc_type[0]), end_condition(bc_type[1]))
    dx = along(np.diff(x), np.ndim(y))
    slope = np.diff(y, axis=0) / dx
    bend = (slopes[:-1] + slopes[1:] - 2.0 * slope) / dx
    c = np.stack((bend / dx, (slope - slopes[:-1]) / dx - bend, slopes[:-1], y[:-1]))
    return Cubic(c, x, True if extrapolate is None else extrapolate, axis)


def spline_slopes(x, y, start, end):
    """The slopes at the points: a tridiagonal system."""
    n = np.size(x)
    dx = np.diff(x)
    wide = along(dx, np.ndim(y))
    slope = np.diff(y, axis=0) / wide
    known = np.zeros_like(y)
    bands = np.zeros((3, n))
    if n == 3 and start == "not-a-knot" and end == "not-a-knot":
        bend = (slope[1] - slope[0]) / (x[2] - x[0])
        middle = slope[0] + bend * dx[0]
        return np.stack((middle - 2.0 * bend * dx[0], middle, middle + 2.0 * bend * dx[1]))
    bands[1, 1:-1] = 2.0 * (dx[:-1] + dx[1:])
    bands[0, 2:] = dx[:-1]
    bands[2, :-2] = dx[1:]
    known[1:-1] = 3.0 * (wide[1:] * slope[:-1] + wide[:-1] * slope[1:])
    if start == "not-a-knot":
        if n == 2:  # a straight line
            bands[1, 0] = 1.0
            known[0] = slope[0]
        else:
            d = x[2] - x[0]
            bands[1, 0] = dx[1]
            bands[0, 1] = d
            known[0] = ((dx[0] + 2.0 * d) * dx[1] * slope[0] + dx[0] ** 2 * slope[1]) / d
    elif start[0] == 1:
        bands[1, 0] = 1.0
        known[0] = start[1]
    else:
        bands[1, 0] = 2.0 * dx[0]
        bands[0, 1] = dx[0]
        known[0] = -0.5 * start[1] * dx[0] ** 2 + 3.0 * (y[1] - y[0])
    if end == "not-a-knot":
        if n == 2:
            bands[1, 1] = 1.0
            known[1] = slope[0]
        else:
            d = x[n - 1] - x[n - 3]
            bands[1, n - 1] = dx[n - 3]
            bands[2, n - 2] = d
            known[n - 1] = (dx[n - 2] ** 2 * slope[n - 3] + (2.0 * d + dx[n - 2]) * dx[n - 3] * slope[n - 2]) / d
    elif end[0] == 1:
        bands[1, n - 1] = 1.0
        known[n - 1] = end[1]
    else:
        bands[1, n - 1] = 2.0 * dx[n - 2]
        bands[2, n - 2] = dx[n - 2]
        known[n - 1] = 0.5 * end[1] * dx[n - 2] ** 2 + 3.0 * (y[n - 1] - y[n - 2])
    return np.reshape(linalg.solve_banded((1, 1), bands, np.reshape(known, (n, -1))), np.shape(y))


# ---- interp1d --------------------------------------------------------------------------------------------------------


class Line:
    """A curve of `interp1d` made in a program; `outside` is None (extrapolate), () (an error) or two values."""

    __tapegen_inside__ = "a scipy.interpolate.interp1d"

    def __init__(self, x, rows, kind, axis, shape, outside):
        self.x, self.rows, self.kind, self.axis, self.shape, self.outside = x, rows, kind, axis, shape, outside

    def __call__(self, x):
        return curve_at(self.x, self.rows, self.kind, x, self.axis, self.shape, self.outside)


@expands(interpolate.interp1d, written=True)
def interp1d(x, y, kind="linear", axis=-1, copy=True, bounds_error=None, fill_value=np.nan, assume_sorted=False):
    one_of("kind", kind, ("linear", "cubic", "nearest", "nearest-up", "previous", "next"))
    x, y = as_float64(x), as_float64(y)
    axis = axis % np.ndim(y)
    y = np.moveaxis(y, axis, 0)
    if not assume_sorted:
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
    if isinstance(fill_value, str):
        one_of("fill_value", fill_value, ("extrapolate",))
        require(kind in ("linear", "cubic"), f"kind={kind!r} is not extrapolated here.", "Give two numbers.")
        outside = None
    elif bounds_error is None or bounds_error:
        outside = ()
    elif isinstance(fill_value, tuple):
        outside = fill_value
    else:
        outside = (fill_value, fill_value)
    rows = np.reshape(np.copy(y), (np.size(x), -1))
    if kind == "cubic":
        if np.size(x) < 4:
            raise ValueError("x and y arrays must have at least 4 entries")
        rows = cubic_spline(x, rows).c
    return Line(x, rows, kind, axis, np.shape(y)[1:], outside)


@expands(interpolate.interp1d.__call__, written=True)
def call_of_line(self, x):
    require(isinstance(self, interpolate.interp1d), "curves of this kind have no rule.", "Use a CubicSpline.")
    require(self._kind != "spline", "splines of interp1d are evaluated where they are made.", "Use a CubicSpline.")
    if self._extrapolate:
        outside = None
    elif self.bounds_error:
        outside = ()
    else:
        outside = (self._fill_value_below, self._fill_value_above)
    return curve_at(self.x, self._y, self._kind, x, self._y_axis, self._y_extra_shape, outside)


def curve_at(x, rows, kind, points, axis, shape, outside):
    """The values of a curve, whose points have one row each."""
    points = as_float64(points)
    row = np.ravel(points)
    last = np.size(x) - 1
    if outside == () and np.any(fall_outside(x, row)):
        raise ValueError("a value is outside of the range of the interpolation")
    if kind == "cubic":
        values = polynomials_at(rows, x, row, 0, True, 0)
    elif kind == "linear":
        k = np.clip(np.searchsorted(x, row), 1, last)
        slope = (rows[k] - rows[k - 1]) / along(x[k] - x[k - 1], 2)
        values = slope * along(row - x[k - 1], 2) + rows[k - 1]
    elif kind == "previous":
        values = rows[np.clip(np.searchsorted(x, row, side="right"), 1, last + 1) - 1]
    elif kind == "next":
        values = rows[np.clip(np.searchsorted(x, row), 0, last)]
    else:
        middles = x[1:] / 2.0 + x[:-1] / 2.0
        values = rows[np.clip(np.searchsorted(middles, row, side="left" if kind == "nearest" else "right"), 0, last)]
    if outside is not None and len(outside) == 2:
        values = np.where(along(row < x[0], 2), outside[0], values)
        values = np.where(along(row > x[last], 2), outside[1], values)
    return in_place(np.reshape(values, np.shape(points) + shape), points, axis)


# ---- regular grids ---------------------------------------------------------------------------------------------------


class Grid:
    """A `RegularGridInterpolator` made in a program."""

    __tapegen_inside__ = "a scipy.interpolate.RegularGridInterpolator"

    def __init__(self, grid, values, method, bounds_error, fill_value):
        self.grid, self.values, self.method = grid, values, method
        self.bounds_error, self.fill_value = bounds_error, fill_value

    def __call__(self, xi, method=None, *, nu=None):
        require(nu is None, "derivatives of a grid have no rule.", "Use tg.grad.")
        method = self.method if method is None else method
        return grid_at(self.grid, self.values, method, xi, self.bounds_error, self.fill_value)


@expands(interpolate.RegularGridInterpolator, written=True)
def regular_grid(
    points, values, method="linear", bounds_error=True, fill_value=np.nan, *, solver=None, solver_args=None
):
    grid = tuple(points)
    axes = ()
    for part in grid:
        axes = (*axes, as_float64(part))
        if np.any(np.diff(as_float64(part)) <= 0.0):
            raise ValueError("the points of a grid do not increase")
    return Grid(axes, as_float64(values), method, bounds_error, fill_value)


@expands(interpolate.RegularGridInterpolator.__call__, written=True)
def call_of_grid(self, xi, method=None, *, nu=None):
    require(nu is None, "derivatives of a grid have no rule.", "Use tg.grad.")
    method = self.method if method is None else method
    return grid_at(self._grid, self._values, method, xi, self.bounds_error, self.fill_value)


def coordinates(xi, count):
    """The points, one in each row, and the shape of the result."""
    if isinstance(xi, tuple):
        columns = np.broadcast_arrays(*xi)
        parts = ()
        for column in columns:
            parts = (*parts, np.ravel(as_float64(column)))
        return np.stack(parts, axis=-1), np.shape(columns[0])
    points = as_float64(xi)
    rows = np.reshape(points, (-1, count))
    if np.ndim(points) == 1:
        return rows, (np.shape(rows)[0],)
    return rows, np.shape(points)[:-1]


def grid_at(grid, values, method, xi, bounds_error, fill_value):
    """Multilinear interpolation between the points of a grid, or nearest-neighbour values."""
    one_of("method", method, ("linear", "nearest"))
    rows, shape = coordinates(xi, len(grid))
    outside = np.zeros(np.shape(rows)[0], dtype=np.bool_)
    indices = ()
    shares = ()
    for axis, points in enumerate(grid):
        outside = outside | fall_outside(points, rows[:, axis])
        k = np.clip(np.searchsorted(points, rows[:, axis]) - 1, 0, np.size(points) - 2)
        indices = (*indices, k)
        shares = (*shares, (rows[:, axis] - points[k]) / (points[k + 1] - points[k]))
    if bounds_error and np.any(outside):
        raise ValueError("a point is outside of the grid")
    trailing = np.ndim(values) - len(grid)
    if method == "nearest":
        nearest = ()
        for k, share in zip(indices, shares, strict=True):
            nearest = (*nearest, np.where(share <= 0.5, k, k + 1))
        found = values[nearest]
    else:
        found = blended(values, indices, shares, (), np.ones(np.shape(rows)[0]), trailing)
    if not bounds_error and fill_value is not None:
        found = np.where(along(outside, 1 + trailing), fill_value, found)
    found = np.where(along(np.any(np.isnan(rows), axis=1), 1 + trailing), np.nan, found)
    return np.reshape(found, shape + np.shape(values)[len(grid) :])


def blended(values, indices, shares, chosen, weight, trailing):
    """The weighted sum over the corners of each cell, by recursion over the axes."""
    if len(chosen) == len(indices):
        return values[chosen] * along(weight, 1 + trailing)
    k = indices[len(chosen)]
    share = shares[len(chosen)]
    low = blended(values, indices, shares, (*chosen, k), weight * (1.0 - share), trailing)
    return low + blended(values, indices, shares, (*chosen, k + 1), weight * share, trailing)
