"""Reductions, scans and what is made of them."""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import (
    count_along,
    expand_like,
    flat,
    keep_axis,
    kept_count,
    kept_mean,
    require,
    reverse_axis,
    slice_axis,
    unflat,
)
from tapegen.rules.registry import expands, linear, pullback

# ---- sums and means ------------------------------------------------------------------------------------------------


@linear(np.sum, in_="a", shapes=[(3, 4)])
def sum_(a, axis=None, dtype=None, *, keepdims=False, out_bar):
    return expand_like(out_bar, a, axis, keepdims)


@linear(np.mean, in_="a", shapes=[(3, 4)])
def mean(a, axis=None, dtype=None, *, keepdims=False, out_bar):
    return expand_like(out_bar / count_along(a, axis), a, axis, keepdims)


@expands(np.average, shapes=[(3, 4)])
def average(a, axis=None, weights=None, *, keepdims=False):
    if weights is None:
        return np.mean(a, axis=axis, keepdims=keepdims)
    if np.ndim(weights) < np.ndim(a):
        # one weight for each slice along the axis
        weights = np.moveaxis(np.broadcast_to(weights, np.shape(np.moveaxis(a, axis, -1))), -1, axis)
    total = np.sum(weights, axis=axis, keepdims=keepdims)
    return np.sum(a * weights, axis=axis, keepdims=keepdims) / total


@pullback(np.var, shapes=[(3, 4)])
def var(a, axis=None, dtype=None, *, ddof=0, keepdims=False, out_bar):
    centred = a - kept_mean(a, axis)
    scale = 2.0 / (count_along(a, axis) - ddof)
    return scale * centred * keep_axis(out_bar, axis, keepdims)


@var.pushforward
def var_pushforward(a, axis=None, dtype=None, *, ddof=0, keepdims=False, a_dot):
    centred = a - kept_mean(a, axis)
    return 2.0 / (count_along(a, axis) - ddof) * np.sum(centred * a_dot, axis=axis, keepdims=keepdims)


@pullback(np.std, shapes=[(3, 4)])
def std(a, axis=None, dtype=None, *, ddof=0, keepdims=False, out, out_bar):
    """Where all values are equal, the derivative of least norm, 0."""
    centred = a - kept_mean(a, axis)
    scale = out_bar / ((count_along(a, axis) - ddof) * (out + (out == 0.0)))
    return centred * keep_axis(scale, axis, keepdims)


@std.pushforward
def std_pushforward(a, axis=None, dtype=None, *, ddof=0, keepdims=False, out, a_dot):
    centred = a - kept_mean(a, axis)
    scale = 1.0 / ((count_along(a, axis) - ddof) * (out + (out == 0.0)))
    return scale * np.sum(centred * a_dot, axis=axis, keepdims=keepdims)


# ---- products ------------------------------------------------------------------------------------------------------


def product_of_others(x, axis):
    """Along an axis, for each element the product of all others: exact also among zeros."""
    one = np.ones_like(slice_axis(x, axis, 0, 1))
    before = np.concatenate((one, np.cumprod(slice_axis(x, axis, 0, -1), axis=axis)), axis=axis)
    after = np.concatenate((one, np.cumprod(slice_axis(reverse_axis(x, axis), axis, 0, -1), axis=axis)), axis=axis)
    return before * reverse_axis(after, axis)


@pullback(np.prod, shapes=[(3, 4)])
def prod(a, axis=None, dtype=None, *, keepdims=False, out_bar):
    return prod_slope(a, axis) * keep_axis(out_bar, axis, keepdims)


@prod.pushforward
def prod_pushforward(a, axis=None, dtype=None, *, keepdims=False, a_dot):
    return np.sum(prod_slope(a, axis) * a_dot, axis=axis, keepdims=keepdims)


def prod_slope(a, axis):
    """Derivative of the product by each of its factors."""
    if isinstance(axis, tuple):
        require(len(axis) == 1, "np.prod over several axes has no rule.", "Multiply over one axis at a time.")
        axis = axis[0]
    if axis is None:
        return unflat(product_of_others(flat(a), 0), a)
    return product_of_others(a, axis)


# ---- largest and smallest ------------------------------------------------------------------------------------------


@pullback(np.max, np.amax, np.min, np.amin, shapes=[(3, 4)])
def max_(a, axis=None, *, keepdims=False, out, out_bar):
    """Elements that tie share alike."""
    hit = a == keep_axis(out, axis, keepdims)
    return np.where(hit, keep_axis(out_bar, axis, keepdims) / kept_count(hit, axis, a.dtype), 0.0)


@max_.pushforward
def max_pushforward(a, axis=None, *, keepdims=False, out, a_dot):
    hit = a == keep_axis(out, axis, keepdims)
    ties = np.sum(hit, axis=axis, keepdims=keepdims, dtype=a.dtype)
    return np.sum(np.where(hit, a_dot, 0.0), axis=axis, keepdims=keepdims) / ties


@expands(np.ptp, shapes=[(3, 4)])
def ptp(a, axis=None, *, keepdims=False):
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


@expands(np.median, shapes=[(3, 4)])
def median(a, axis=None, *, keepdims=False):
    require(not isinstance(axis, tuple), "np.median over several axes has no rule.", "Reshape them to one axis.")
    require(axis is not None or not keepdims, "np.median(keepdims=True) over all axes has no rule.", "Pass axis=.")
    if axis is None:
        a = flat(a)
        axis = 0
    n = np.shape(a)[axis]
    middle = slice_axis(np.sort(a, axis=axis), axis, (n - 1) // 2, n // 2 + 1)
    return np.mean(middle, axis=axis, keepdims=keepdims)


# ---- scans and differences -----------------------------------------------------------------------------------------


@linear(np.cumsum, in_="a", shapes=[(3, 4)])
def cumsum(a, axis=None, dtype=None, *, out_bar):
    if axis is None:
        return unflat(np.cumsum(out_bar[::-1])[::-1], a)
    return reverse_axis(np.cumsum(reverse_axis(out_bar, axis), axis=axis), axis)


@pullback(np.cumprod, shapes=[(3, 4)])
def cumprod(a, axis=None, dtype=None, *, out_bar):
    """Two recurrences, so that zeros are exact: the product of what came before times what follows."""
    if axis is None:
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
    if axis is None:
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


@linear(np.diff, in_="a", shapes=[(3, 4)])
def diff(a, n=1, axis=-1, *, out_bar):
    return diff_bar(out_bar, a, n, axis)


def diff_bar(out_bar, a, n, axis):
    """Cotangent of the argument of the n-th difference."""
    if n == 0:
        return out_bar
    size = np.shape(out_bar)[axis] + 1
    bar = np.zeros_like(slice_axis(a, axis, 0, size))
    upper = slice_axis(bar, axis, 1, None)
    lower = slice_axis(bar, axis, 0, -1)
    upper += out_bar
    lower -= out_bar
    return diff_bar(bar, a, n - 1, axis)
