"""Sorting and order statistics: a piecewise constant permutation, and interpolation between neighbours."""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import flat, keep_axis, lanes, one_axis, one_of, require, unflat
from tapegen.rules.registry import expands, fixed, pullback


@pullback(np.sort, shapes=[(3, 4)])
def sort(a, axis=-1, *, out_bar):
    if axis is None:
        flat_bar = np.zeros(np.size(a), dtype=a.dtype)
        flat_bar[np.argsort(a, axis=None)] = out_bar
        return unflat(flat_bar, a)
    order = np.argsort(a, axis=axis)
    if np.ndim(a) == 1:
        a_bar = np.zeros_like(a)
        a_bar[order] = out_bar
        return a_bar
    return np.take_along_axis(out_bar, np.argsort(order, axis=axis), axis=axis)


@sort.pushforward
def sort_pushforward(a, axis=-1, *, a_dot):
    if axis is None:
        return flat(a_dot)[np.argsort(a, axis=None)]
    return np.take_along_axis(a_dot, np.argsort(a, axis=axis), axis=axis)


@expands(np.partition, shapes=[(3, 4), fixed(1)])
def partition(a, kth, axis=-1):
    if axis is None:
        return flat(a)[np.argpartition(flat(a), kth)]
    return np.take_along_axis(a, np.argpartition(a, kth, axis=axis), axis=axis)


@expands(np.median, shapes=[(3, 4)])
def median(a, axis=None, *, keepdims=False):
    rows = np.sort(lanes(a, axis), axis=0)
    n = np.shape(rows)[0]
    middle = np.mean(rows[(n - 1) // 2 : n // 2 + 1], axis=0)
    missing = np.any(np.isnan(rows[n - 1 :]), axis=0)  # none if empty
    found = np.where(missing, np.nan, middle)
    return keep_axis(found, one_axis(axis, np.ndim(a), 0, keepdims), False)


@expands(np.quantile, shapes=[(5,), fixed(0.3)])
def quantile(a, q, axis=None, *, method="linear", keepdims=False, weights=None):
    """Also with respect to q: the slope of the line between the neighbours."""
    check_quantiles(q)
    if np.ndim(q) > 1:
        found = quantile(a, np.ravel(q), axis, method=method, keepdims=keepdims, weights=weights)
        return np.reshape(found, np.shape(q) + np.shape(found)[1:])
    rows = np.sort(lanes(a, axis), axis=0)
    n = np.shape(rows)[0]
    if weights is None:
        found = at_quantiles(rows, q, n, method)
    else:
        found = row_at(rows, place_by_weight(lanes(a, axis), weights_of(weights, a, axis), q))
    found = np.where(np.isnan(rows[n - 1]), np.nan, found)
    return keep_axis(found, one_axis(axis, np.ndim(a), np.ndim(q), keepdims), False)


@expands(np.percentile, shapes=[(5,), fixed(30.0)])
def percentile(a, q, axis=None, *, method="linear", keepdims=False, weights=None):
    return quantile(a, q / 100.0, axis, method=method, keepdims=keepdims, weights=weights)


def check_quantiles(q):
    """Raise as NumPy does, which reduces q unless it is a number or a vector."""
    if np.ndim(q) == 0:
        if not (q >= 0.0 and q <= 1.0):
            raise ValueError("Quantiles must be in the range [0, 1]")
    elif np.size(q) > 0:
        if not (np.min(q) >= 0.0 and np.max(q) <= 1.0):
            raise ValueError("Quantiles must be in the range [0, 1]")
    elif np.ndim(q) > 1:
        raise ValueError("zero-size array to reduction operation minimum which has no identity")


def weights_of(weights, a, axis):
    """The weight of each element, arranged in lanes; weights along the axis alone are broadcast to all lanes."""
    if np.ndim(weights) == np.ndim(a):
        return lanes(weights, axis)
    known = np.ndim(weights) == 1 and isinstance(axis, int)
    require(known, "weights are those of all elements here, or those along one axis.", "Broadcast them.")
    along = np.reshape(weights, np.shape(weights) + (1,) * (np.ndim(a) - 1))
    return np.broadcast_to(along, np.shape(lanes(a, axis)))


def place_by_weight(rows, weights, q):
    """The index where the cumulative weight of the sorted elements reaches the quantile: NumPy's `inverted_cdf`."""
    share = np.cumsum(np.take_along_axis(weights, np.argsort(rows, axis=0), axis=0), axis=0, dtype=np.float64)
    share = share / share[-1]
    share = np.where(share == 0.0, -1.0, share)  # elements of weight zero are never selected first
    if np.ndim(q) > 0:
        q = np.reshape(q, np.shape(q) + (1,) * np.ndim(rows))
        return 1.0 * np.minimum(np.sum(share < q, axis=1), np.shape(rows)[0] - 1)
    return 1.0 * np.minimum(np.sum(share < q, axis=0), np.shape(rows)[0] - 1)


def at_quantiles(rows, q, count, method):
    """Quantiles of sorted lanes, of which the first `count` rows are not NaN; the axes of an array q come first."""
    one_of("method", method, ("linear", "lower", "higher", "nearest", "midpoint"))
    if np.ndim(q) > 0:
        q = np.reshape(q, np.shape(q) + (1,) * (np.ndim(rows) - 1))
    place = q * (count - 1)
    if method == "nearest":
        return row_at(rows, np.rint(place))
    if method == "lower":
        return row_at(rows, np.floor(place))
    if method == "higher":
        return row_at(rows, np.ceil(place))
    low = row_at(rows, np.floor(place))
    high = row_at(rows, np.minimum(np.floor(place) + 1.0, count - 1.0))
    if method == "midpoint":
        return np.where(np.floor(place) == place, low, 0.5 * (low + high))
    return low + (place - np.floor(place)) * (high - low)


def row_at(rows, place):
    """The elements of each lane at an integer position, which may differ between lanes."""
    if np.ndim(place) == 0:
        return rows[int(place)]
    k = np.astype(np.maximum(place, 0.0), np.int64)
    if np.ndim(rows) == 1:
        return rows[k]
    whole = np.shape(k)[:1] + np.shape(rows)[1:]
    if np.ndim(k) < np.ndim(rows):
        return np.take_along_axis(rows, np.expand_dims(k, 0), axis=0)[0]
    return np.take_along_axis(rows, np.broadcast_to(k, whole), axis=0)
