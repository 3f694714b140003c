"""Reductions: sums, means, variances, products, extrema."""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import (
    axes_tuple,
    count_along,
    expand_like,
    flat,
    from_lanes,
    in_floats,
    keep_axis,
    kept_count,
    kept_mean,
    lanes,
    reverse_axis,
    slice_axis,
    unflat,
)
from tapegen.rules.registry import expands, linear, pullback

# ---- sums and means ------------------------------------------------------------------------------------------------


@linear(np.sum, in_="a", shapes=[(3, 4)], of_complex=True)
def sum_(a, axis=None, dtype=None, *, keepdims=False, out_bar):
    return expand_like(out_bar, a, axis, keepdims)


@linear(np.mean, in_="a", shapes=[(3, 4)], of_complex=True)
def mean(a, axis=None, dtype=None, *, keepdims=False, out_bar):
    return expand_like(out_bar / count_along(a, axis), a, axis, keepdims)


@expands(np.average, shapes=[(3, 4)], of_complex=True)
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    if weights is None:
        plain = np.mean(a, axis=axis, keepdims=keepdims)
        if returned:
            return plain, np.ones_like(plain) * count_along(a, axis)
        return plain
    if np.ndim(weights) < np.ndim(a):
        # one weight for each slice along the axes
        axes = axes_tuple(axis, np.ndim(a))
        last = axes_tuple(None, np.ndim(a))[np.ndim(a) - len(axes) :]
        weights = np.moveaxis(np.broadcast_to(weights, np.shape(np.moveaxis(a, axes, last))), last, axes)
    total = np.sum(weights, axis=axis, keepdims=keepdims)
    weighted = np.sum(in_floats(a) * weights, axis=axis, keepdims=keepdims) / total
    if returned:
        return weighted, np.ones_like(weighted) * total
    return weighted


def degrees_of_freedom(a, axis, ddof, correction):
    """The divisor of a variance; `correction` is the newer name of `ddof`."""
    return count_along(a, axis) - (ddof if correction is None else correction)


@pullback(np.var, shapes=[(3, 4)], of_complex=True)
def var(a, axis=None, dtype=None, *, ddof=0, correction=None, keepdims=False, out_bar):
    centred = np.conj(a - kept_mean(a, axis))
    scale = 2.0 * out_bar / degrees_of_freedom(a, axis, ddof, correction)
    return centred * keep_axis(scale, axis, keepdims)


@var.pushforward
def var_pushforward(a, axis=None, dtype=None, *, ddof=0, correction=None, keepdims=False, a_dot):
    centred = np.conj(a - kept_mean(a, axis))
    total = np.sum(np.real(centred * a_dot), axis=axis, keepdims=keepdims)
    return 2.0 * total / degrees_of_freedom(a, axis, ddof, correction)


@pullback(np.std, shapes=[(3, 4)], of_complex=True)
def std(a, axis=None, dtype=None, *, ddof=0, correction=None, keepdims=False, out, out_bar):
    """Where all values are equal, the derivative of least norm, 0."""
    centred = np.conj(a - kept_mean(a, axis))
    scale = out_bar / (degrees_of_freedom(a, axis, ddof, correction) * (out + (out == 0.0)))
    return centred * keep_axis(scale, axis, keepdims)


@std.pushforward
def std_pushforward(a, axis=None, dtype=None, *, ddof=0, correction=None, keepdims=False, out, a_dot):
    centred = np.conj(a - kept_mean(a, axis))
    scale = 1.0 / (degrees_of_freedom(a, axis, ddof, correction) * (out + (out == 0.0)))
    return scale * np.sum(np.real(centred * a_dot), axis=axis, keepdims=keepdims)


# ---- products ------------------------------------------------------------------------------------------------------


def product_of_others(x, axis):
    """For each element along an axis the product of all others, exact also with zeros."""
    one = np.ones_like(slice_axis(x, axis, 0, 1))
    before = np.concatenate((one, np.cumprod(slice_axis(x, axis, 0, -1), axis=axis)), axis=axis)
    after = np.concatenate((one, np.cumprod(slice_axis(reverse_axis(x, axis), axis, 0, -1), axis=axis)), axis=axis)
    return before * reverse_axis(after, axis)


@pullback(np.prod, shapes=[(3, 4)], of_complex=True)
def prod(a, axis=None, dtype=None, *, keepdims=False, out_bar):
    return prod_slope(a, axis) * keep_axis(out_bar, axis, keepdims)


@prod.pushforward
def prod_pushforward(a, axis=None, dtype=None, *, keepdims=False, a_dot):
    return np.sum(prod_slope(a, axis) * a_dot, axis=axis, keepdims=keepdims)


def prod_slope(a, axis):
    """Derivative of the product by each of its factors."""
    if np.ndim(a) == 0:
        return np.ones_like(a)
    if isinstance(axis, tuple):
        return from_lanes(product_of_others(lanes(a, axis), 0), a, axis)
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
