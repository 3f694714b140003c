"""Scans (prefix sums and products) along an axis, differences and gradients."""

from __future__ import annotations

import math

import numpy as np

from tapegen.rules.helpers import (
    axes_tuple,
    flat,
    in_floats,
    index_axis,
    one_of,
    require,
    reverse_axis,
    slice_axis,
    trailing_axes,
    unflat,
)
from tapegen.rules.registry import expands, linear, pullback

# ---- sums and products ---------------------------------------------------------------------------------------------


@linear(np.cumsum, in_="a", shapes=[(3, 4)], of_complex=True)
def cumsum(a, axis=None, dtype=None, *, out_bar):
    if axis is None:
        return unflat(np.cumsum(out_bar[::-1])[::-1], a)
    return reverse_axis(np.cumsum(reverse_axis(out_bar, axis), axis=axis), axis)


@pullback(np.cumprod, shapes=[(3, 4)], of_complex=True)
def cumprod(a, axis=None, dtype=None, *, out_bar):
    """Two recurrences, so that zeros are exact: the product of what came before times what follows."""
    if axis is None or np.ndim(a) == 0:
        return unflat(cumprod_rows_bar(flat(a), out_bar), a)
    if axis % np.ndim(a) == 0:
        return cumprod_rows_bar(a, out_bar)
    rows_bar = cumprod_rows_bar(np.moveaxis(a, axis, 0), np.moveaxis(out_bar, axis, 0))
    return np.moveaxis(rows_bar, 0, axis)


def cumprod_rows_bar(rows, out_bar):
    """Cotangent of the argument of `np.cumprod(rows, axis=0)`."""
    n = np.shape(rows)[0]
    rows_bar = np.copy(out_bar)
    for k in range(n - 2, -1, -1):
        rows_bar[k] += rows[k + 1] * rows_bar[k + 1]
    rows_bar[1:] *= np.cumprod(rows[:-1], axis=0)
    return rows_bar


@cumprod.pushforward
def cumprod_pushforward(a, axis=None, dtype=None, *, a_dot):
    if axis is None or np.ndim(a) == 0:
        return cumprod_rows_dot(flat(a), flat(a_dot))
    if axis % np.ndim(a) == 0:
        return cumprod_rows_dot(a, a_dot)
    rows_dot = cumprod_rows_dot(np.moveaxis(a, axis, 0), np.moveaxis(a_dot, axis, 0))
    return np.moveaxis(rows_dot, 0, axis)


def cumprod_rows_dot(rows, rows_dot):
    """Tangent of `np.cumprod(rows, axis=0)`."""
    out_dot = np.copy(rows_dot)
    out_dot[1:] *= np.cumprod(rows[:-1], axis=0)
    for k in range(1, np.shape(rows)[0]):
        out_dot[k] += rows[k] * out_dot[k - 1]
    return out_dot


@expands(np.cumulative_sum, shapes=[(4,)], of_complex=True)
def cumulative_sum(x, *, axis=None, dtype=None, include_initial=False):
    axis = scanned_axis(axis, np.ndim(x))
    sums = np.cumsum(x, axis=axis, dtype=dtype)
    if include_initial:
        return np.concatenate((np.zeros(one_along(sums, axis), dtype=sums.dtype), sums), axis=axis)
    return sums


@expands(np.cumulative_prod, shapes=[(4,)], of_complex=True)
def cumulative_prod(x, *, axis=None, dtype=None, include_initial=False):
    axis = scanned_axis(axis, np.ndim(x))
    products = np.cumprod(x, axis=axis, dtype=dtype)
    if include_initial:
        return np.concatenate((np.ones(one_along(products, axis), dtype=products.dtype), products), axis=axis)
    return products


def one_along(x, axis):
    """The shape of an array with one element along an axis."""
    return np.shape(x)[:axis] + (1,) + np.shape(x)[axis + 1 :]


def scanned_axis(axis, rank):
    """The axis that a scan of the array API runs along; a scalar becomes a vector."""
    if axis is None:
        require(rank <= 1, "this scan needs an axis for arrays of more than one.", "Pass axis=.")
        return 0
    if rank == 0:
        return 0
    return axis % rank


# ---- differences ---------------------------------------------------------------------------------------------------


@linear(np.diff, in_="a", shapes=[(3, 4)], of_complex=True)
def diff(a, n=1, axis=-1, *, out_bar):
    return diff_bar(out_bar, a, n, axis)


def diff_bar(out_bar, a, n, axis):
    """Cotangent of the argument of the n-th difference."""
    if n == 0:
        return out_bar
    bar = np.zeros_like(a)
    if n > 1:
        bar = np.zeros_like(slice_axis(a, axis, 0, max(np.shape(a)[axis] - (n - 1), 0)))
    upper = slice_axis(bar, axis, 1, None)
    lower = slice_axis(bar, axis, 0, -1)
    upper += out_bar
    lower -= out_bar
    return diff_bar(bar, a, n - 1, axis)


@expands(np.ediff1d, shapes=[(5,)], of_complex=True)
def ediff1d(ary, to_end=None, to_begin=None):
    steps = np.diff(flat(ary))
    parts = (steps,)
    if to_begin is not None:
        parts = (np.astype(np.ravel(to_begin), steps.dtype),) + parts
    if to_end is not None:
        parts = parts + (np.astype(np.ravel(to_end), steps.dtype),)
    if len(parts) == 1:
        return steps
    return np.concatenate(parts)


@expands(np.unwrap, shapes=[lambda rng: np.array([0.3, 2.0, 5.9, -0.2, -3.0])])
def unwrap(p, discont=None, axis=-1, *, period=2.0 * math.pi):
    half = 0.5 * period
    least = half
    if discont is not None:
        least = np.maximum(discont, half)
    steps = np.diff(p, axis=axis)
    turned = np.mod(steps + half, period) - half
    turned = np.where((turned == -half) & (steps > 0.0), half, turned)
    turns = np.where(np.abs(steps) < least, 0.0, turned - steps)
    first = slice_axis(p, axis, 0, 1)
    return np.concatenate((first, slice_axis(p, axis, 1, None) + np.cumsum(turns, axis=axis)), axis=axis)


@expands(np.gradient, shapes=[(5,)], of_complex=True)
def gradient(f, *varargs, axis=None, edge_order=1):
    """Second order inside; with respect to the spacing and to coordinates too."""
    one_of("edge_order", edge_order, (1, 2))
    require(np.ndim(f) > 0, "np.gradient of a number has no rule.", "A number has no neighbours.")
    axes = axes_tuple(axis, np.ndim(f))
    f = in_floats(f)
    slopes = ()
    for k, along in enumerate(axes):
        spacing = 1.0
        if len(varargs) == 1:
            spacing = varargs[0]
        elif len(varargs) > 1:
            spacing = varargs[k]
        if np.ndim(spacing) == 0:
            slopes = slopes + (slope_uniform(f, spacing, along, edge_order),)
        else:
            slopes = slopes + (slope_between(f, in_floats(spacing), along, edge_order),)
    if len(axes) == 1:
        return slopes[0]
    return slopes


def slope_uniform(f, h, axis, edge_order):
    """Central differences along an axis with one spacing."""
    inner = (slice_axis(f, axis, 2, None) - slice_axis(f, axis, 0, -2)) / (2.0 * h)
    if edge_order == 1:
        first = (row(f, axis, 1) - row(f, axis, 0)) / h
        last = (row(f, axis, -1) - row(f, axis, -2)) / h
    else:
        first = (2.0 * row(f, axis, 1) - 1.5 * row(f, axis, 0) - 0.5 * row(f, axis, 2)) / h
        last = (1.5 * row(f, axis, -1) - 2.0 * row(f, axis, -2) + 0.5 * row(f, axis, -3)) / h
    return np.concatenate((first, inner, last), axis=axis)


def slope_between(f, x, axis, edge_order):
    """Differences of second order between points at coordinates x along an axis."""
    steps = np.reshape(np.diff(x), (1,) * axis + (-1,) + (1,) * (np.ndim(f) - axis - 1))
    a = slice_axis(steps, axis, 0, -1)
    b = slice_axis(steps, axis, 1, None)
    before = slice_axis(f, axis, 0, -2) * (-b / (a * (a + b)))
    inner = before + slice_axis(f, axis, 1, -1) * ((b - a) / (a * b))
    inner = inner + slice_axis(f, axis, 2, None) * (a / (b * (a + b)))
    if edge_order == 1:
        first = (row(f, axis, 1) - row(f, axis, 0)) / row(steps, axis, 0)
        last = (row(f, axis, -1) - row(f, axis, -2)) / row(steps, axis, -1)
        return np.concatenate((first, inner, last), axis=axis)
    a = row(steps, axis, 0)
    b = row(steps, axis, 1)
    first = row(f, axis, 1) * ((a + b) / (a * b)) - row(f, axis, 0) * ((2.0 * a + b) / (a * (a + b)))
    first = first - row(f, axis, 2) * (a / (b * (a + b)))
    a = row(steps, axis, -2)
    b = row(steps, axis, -1)
    last = row(f, axis, -3) * (b / (a * (a + b))) - row(f, axis, -2) * ((a + b) / (a * b))
    last = last + row(f, axis, -1) * ((2.0 * b + a) / (b * (a + b)))
    return np.concatenate((first, inner, last), axis=axis)


def row(x, axis, k):
    """`x[k]` along an axis, which is kept."""
    return np.expand_dims(index_axis(x, axis, k), axis)


@expands(np.trapezoid, shapes=[(3, 4)], of_complex=True)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    pairs = slice_axis(y, axis, 1, None) + slice_axis(y, axis, 0, -1)
    if x is None:
        return np.sum(0.5 * dx * pairs, axis=axis)
    if np.ndim(x) == np.ndim(y):
        return np.sum(0.5 * np.diff(x, axis=axis) * pairs, axis=axis)
    widths = np.expand_dims(np.diff(x), trailing_axes(axis, np.ndim(y)))
    return np.sum(0.5 * widths * pairs, axis=axis)
