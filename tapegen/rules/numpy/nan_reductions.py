"""Reductions and scans that skip NaN: NaN elements have a zero derivative."""

from __future__ import annotations

import numpy as np

from tapegen.rules.arrays.sorting import at_quantiles, check_quantiles, place_by_weight, row_at, weights_of
from tapegen.rules.helpers import keep_axis, kept_count, kept_sum, lanes, one_axis
from tapegen.rules.registry import expands


def some_missing(*shape):
    """Arguments for the automatic test: well separated values, a few of them NaN."""

    def draw(rng):
        x = rng.permutation(np.linspace(-1.4, 1.6, int(np.prod(shape))))
        x[1 :: max(2, x.size // 3)] = np.nan
        return x.reshape(shape)

    return draw


@expands(np.nansum, shapes=[some_missing(3, 4)])
def nansum(a, axis=None, dtype=None, *, keepdims=False):
    return np.sum(np.where(np.isnan(a), 0.0, a), axis=axis, dtype=dtype, keepdims=keepdims)


@expands(np.nanprod, shapes=[some_missing(3, 4)])
def nanprod(a, axis=None, dtype=None, *, keepdims=False):
    return np.prod(np.where(np.isnan(a), 1.0, a), axis=axis, dtype=dtype, keepdims=keepdims)


@expands(np.nancumsum, shapes=[some_missing(3, 4)])
def nancumsum(a, axis=None, dtype=None):
    return np.cumsum(np.where(np.isnan(a), 0.0, a), axis=axis, dtype=dtype)


@expands(np.nancumprod, shapes=[some_missing(3, 4)])
def nancumprod(a, axis=None, dtype=None):
    return np.cumprod(np.where(np.isnan(a), 1.0, a), axis=axis, dtype=dtype)


@expands(np.nanmax, shapes=[some_missing(3, 4)])
def nanmax(a, axis=None, *, keepdims=False):
    """NaN where there is nothing else."""
    missing = np.isnan(a)
    best = np.max(np.where(missing, -np.inf, a), axis=axis, keepdims=keepdims)
    return np.where(np.all(missing, axis=axis, keepdims=keepdims), np.nan, best)


@expands(np.nanmin, shapes=[some_missing(3, 4)])
def nanmin(a, axis=None, *, keepdims=False):
    """NaN where there is nothing else."""
    missing = np.isnan(a)
    best = np.min(np.where(missing, np.inf, a), axis=axis, keepdims=keepdims)
    return np.where(np.all(missing, axis=axis, keepdims=keepdims), np.nan, best)


@expands(np.nanmean, shapes=[some_missing(3, 4)])
def nanmean(a, axis=None, dtype=None, *, keepdims=False):
    missing = np.isnan(a)
    total = np.sum(np.where(missing, 0.0, a), axis=axis, dtype=dtype, keepdims=keepdims)
    return total / np.sum(np.logical_not(missing), axis=axis, dtype=np.result_type(total), keepdims=keepdims)


@expands(np.nanvar, shapes=[some_missing(3, 4)])
def nanvar(a, axis=None, dtype=None, *, ddof=0, correction=None, keepdims=False):
    ddof = ddof if correction is None else correction
    present = np.logical_not(np.isnan(a))
    kind = np.result_type(a)
    mean = kept_sum(np.where(present, a, 0.0), axis) / kept_count(present, axis, kind)
    squares = np.sum(np.square(np.where(present, a - mean, 0.0)), axis=axis, keepdims=keepdims)
    count = np.sum(present, axis=axis, dtype=kind, keepdims=keepdims)
    return np.where(count > ddof, squares / np.where(count > ddof, count - ddof, 1.0), np.nan)


@expands(np.nanstd, shapes=[some_missing(3, 4)])
def nanstd(a, axis=None, dtype=None, *, ddof=0, correction=None, keepdims=False):
    """Where all values are equal, the derivative of least norm, 0."""
    spread = nanvar(a, axis, dtype, ddof=ddof, correction=correction, keepdims=keepdims)
    return np.where(spread == 0.0, 0.0, np.sqrt(np.where(spread == 0.0, 1.0, spread)))


@expands(np.nanquantile, shapes=[some_missing(5), lambda rng: 0.3])
def nanquantile(a, q, axis=None, *, method="linear", keepdims=False, weights=None):
    check_quantiles(q)
    if np.ndim(q) > 1:
        found = nanquantile(a, np.ravel(q), axis, method=method, keepdims=keepdims, weights=weights)
        return np.reshape(found, np.shape(q) + np.shape(found)[1:])
    rows = np.astype(np.sort(lanes(a, axis), axis=0), np.result_type(a, 1.0))  # NaN comes last
    rows = np.concatenate((rows, np.full((1,) + np.shape(rows)[1:], np.nan, dtype=rows.dtype)))  # the only row if empty
    if weights is None:
        count = np.sum(np.logical_not(np.isnan(rows)), axis=0, dtype=np.result_type(a))
        found = at_quantiles(rows, q, count, method)
    else:
        present = np.where(np.isnan(lanes(a, axis)), 0.0, weights_of(weights, a, axis))
        found = row_at(rows, place_by_weight(lanes(a, axis), present, q))
    return keep_axis(found, one_axis(axis, np.ndim(a), np.ndim(q), keepdims), False)


@expands(np.nanpercentile, shapes=[some_missing(5), lambda rng: 30.0])
def nanpercentile(a, q, axis=None, *, method="linear", keepdims=False, weights=None):
    return nanquantile(a, q / 100.0, axis, method=method, keepdims=keepdims, weights=weights)


@expands(np.nanmedian, shapes=[some_missing(3, 4)])
def nanmedian(a, axis=None, *, keepdims=False):
    return nanquantile(a, 0.5, axis, keepdims=keepdims)
