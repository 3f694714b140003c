"""Decompositions: call variants of NumPy functions that their rules do not cover, as Python that is inlined."""

from __future__ import annotations

import numpy as np

from tapegen.rules.arrays.shape_manipulation import pad_after, pad_before
from tapegen.rules.helpers import axes_tuple, open_range, require, slice_axis, trailing_axes


def padded(array, pad_width, mode="constant", stat_length=None, end_values=0, constant_values=0):
    """`np.pad` with statistics of the array at its ends: means, extrema, medians; linear ramps or end values."""
    for axis in axes_tuple(None, np.ndim(array)):
        n = np.shape(array)[axis]
        before, after = pad_before(pad_width, axis), pad_after(pad_width, axis)
        if mode == "linear_ramp":
            first, last = slice_axis(array, axis, 0, 1), slice_axis(array, axis, n - 1, n)
            front = ramp(first, before, axis, pad_before(end_values, axis))
            back = np.flip(ramp(last, after, axis, pad_after(end_values, axis)), axis)
        elif mode == "constant":
            zero = np.zeros_like(np.sum(array, axis=axis, keepdims=True))
            front = spread(zero + np.astype(np.asarray(pad_before(constant_values, axis)), array.dtype), before, axis)
            back = spread(zero + np.astype(np.asarray(pad_after(constant_values, axis)), array.dtype), after, axis)
        else:
            some, others = n, n
            if stat_length is not None:
                some, others = min(pad_before(stat_length, axis), n), min(pad_after(stat_length, axis), n)
            front = spread(end_value(slice_axis(array, axis, 0, some), axis, mode), before, axis)
            back = spread(end_value(slice_axis(array, axis, n - others, n), axis, mode), after, axis)
        array = np.concatenate((front, array, back), axis=axis)
    return array


def padded_odd(array, pad_width, mode):
    """`np.pad(reflect_type="odd")`: reflected about each end value, so that slopes continue."""
    for axis in axes_tuple(None, np.ndim(array)):
        n = np.shape(array)[axis]
        period = 2 * n if mode == "symmetric" else max(2 * n - 2, 1)
        place = np.arange(-pad_before(pad_width, axis), n + pad_after(pad_width, axis))
        turns = place // period
        place = place - turns * period
        turned = place >= n
        in_front = turned & (turns < 0)  # reflected about the first row, the others about the last
        turns = turns + in_front
        rows = np.take(array, np.where(turned, period - place - (1 if mode == "symmetric" else 0), place), axis=axis)
        first, last = slice_axis(array, axis, 0, 1), slice_axis(array, axis, n - 1, n)
        trailing = trailing_axes(axis, np.ndim(array))
        rise = np.astype(np.expand_dims(turns, trailing), array.dtype) * (2.0 * (last - first))
        end = np.where(np.expand_dims(in_front, trailing), first, last)
        array = np.where(np.expand_dims(turned, trailing), 2.0 * end - rows, rows) + rise
    return array


def spread(edge, count, axis):
    """A row of an array, repeated."""
    shape = (1,) * axis + (count,) + (1,) * (np.ndim(edge) - axis - 1)
    return edge * np.ones(shape, dtype=edge.dtype)


def ramp(edge, count, axis, end):
    """A linear ramp from a value, which is its first element, to the edge of the array."""
    return np.astype(open_range(count, axis, np.ndim(edge)) * ((edge - end) / max(count, 1)) + end, edge.dtype)


def end_value(part, axis, mode):
    """The padding value for a part of an array."""
    if mode == "mean":
        return np.mean(part, axis=axis, keepdims=True)
    if mode == "median":
        return np.median(part, axis=axis, keepdims=True)
    if mode == "maximum":
        return np.max(part, axis=axis, keepdims=True)
    return np.min(part, axis=axis, keepdims=True)


def differences(a, n=1, axis=-1, prepend=None, append=None):
    """`np.diff` with `prepend` and `append`; a scalar is broadcast to a row."""
    parts = (a,)
    if prepend is not None:
        parts = (beside(prepend, a, axis), *parts)
    if append is not None:
        parts = (*parts, beside(append, a, axis))
    return np.diff(np.concatenate(parts, axis=axis), n, axis)


def beside(value, a, axis):
    """A scalar in the shape of one row of an array."""
    if np.ndim(value) > 0:
        return value
    return np.broadcast_to(value, np.shape(slice_axis(a, axis, 0, 1)))


def instead_of_missing(x, nan=0.0, posinf=None, neginf=None):
    """`np.nan_to_num` with replacement values of the caller."""
    found = np.where(np.isnan(x), nan, np.nan_to_num(x))
    if posinf is not None:
        found = np.where(np.isposinf(x), posinf, found)
    if neginf is not None:
        found = np.where(np.isneginf(x), neginf, found)
    return np.positive(found) if np.ndim(x) == 0 else found  # a scalar, not a zero-dimensional array


def squared_length(z):
    """`abs(z) ** 2`, written so that it has second derivatives at 0."""
    return np.real(z * np.conj(z))


def var_about(a, mean, axis=None, ddof=0, keepdims=False):
    """`np.var(a, mean=...)`, whose mean has the axes of the array."""
    squares = squared_length(a - mean)
    count = np.size(a)
    if axis is not None:
        count = 1
        for k in axes_tuple(axis, np.ndim(a)):
            count = count * np.shape(a)[k]
    return np.sum(squares, axis=axis, keepdims=keepdims) / max(count - ddof, 0)


def std_about(a, mean, axis=None, ddof=0, keepdims=False):
    """`np.std(a, mean=...)`; where all are equal its derivative is 0."""
    spread = var_about(a, mean, axis, ddof, keepdims)
    return np.sqrt(np.where(spread == 0.0, 1.0, spread)) * (spread != 0.0)


def nanvar_about(a, mean, axis=None, ddof=0, keepdims=False):
    """`np.nanvar(a, mean=...)`."""
    present = np.logical_not(np.isnan(a))
    squares = np.sum(squared_length(np.where(present, a - mean, 0.0)), axis=axis, keepdims=keepdims)
    count = np.sum(present, axis=axis, dtype=np.result_type(squares), keepdims=keepdims)
    return np.where(count > ddof, squares / np.where(count > ddof, count - ddof, 1.0), np.nan)[()]


def nanstd_about(a, mean, axis=None, ddof=0, keepdims=False):
    """`np.nanstd(a, mean=...)`; where all are equal its derivative is 0."""
    spread = nanvar_about(a, mean, axis, ddof, keepdims)
    return np.sqrt(np.where(spread == 0.0, 1.0, spread)) * (spread != 0.0)


def extreme_from(func, join, a, initial, axis=None, keepdims=False):
    """`np.max(a, initial=...)`, also of empty arrays: their sum has the shape of the result."""
    if np.size(a) == 0:
        return np.sum(a, axis=axis, keepdims=keepdims) + initial
    return join(func(a, axis=axis, keepdims=keepdims), initial)


def matmul_along(a, b, axes):
    """`np.matmul(axes=)`: the matrix axes of the operands and of the result; a vector has one."""
    if np.ndim(a) > 1:
        a = np.moveaxis(a, axes[0], (-2, -1))
    if np.ndim(b) > 1:
        b = np.moveaxis(b, axes[1], (-2, -1))
    found = a @ b
    if np.ndim(found) == 0:
        return found
    if np.ndim(a) == 1 or np.ndim(b) == 1:
        return np.moveaxis(found, -1, axes[2])
    return np.moveaxis(found, (-2, -1), axes[2])


def spaced(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """`np.linspace` along another axis, with `retstep` or another dtype."""
    found = np.linspace(start, stop, num, endpoint=endpoint)
    if axis != 0:
        found = np.moveaxis(found, 0, axis)
    if dtype is not None and found.dtype != dtype:
        found = np.astype(found, dtype)
    if not retstep:
        return found
    steps = num - 1 if endpoint else num
    require(steps > 0, "np.linspace has no step between so few numbers.", "Leave retstep out.")
    return found, np.subtract(stop, start) / steps


def sparse_grid(*xi, indexing="xy"):
    """`np.meshgrid(sparse=True)`: each vector along its own axis."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    grid = ()
    for k, x in enumerate(xi):
        axis = 1 - k if indexing == "xy" and k < 2 and len(xi) > 1 else k
        grid = (*grid, np.reshape(np.copy(x), (1,) * axis + (np.size(x),) + (1,) * (len(xi) - axis - 1)))
    return grid


def at_many(func, a, q, axis=None, *, method="linear", keepdims=False, weights=None):
    """`np.quantile` and the like with a matrix of quantiles."""
    if np.size(q) == 0:
        raise ValueError("zero-size array to reduction operation minimum which has no identity")
    found = func(a, np.ravel(q), axis, method=method, keepdims=keepdims, weights=weights)
    return np.reshape(found, np.shape(q) + np.shape(found)[1:])


def deleted(arr, places, axis=None):
    """`np.delete` at a slice."""
    size = np.size(arr) if axis is None else np.shape(arr)[axis]
    return np.delete(arr, np.arange(size)[places], axis)


def inserted(arr, places, values, axis=None):
    """`np.insert` at a slice."""
    size = np.size(arr) if axis is None else np.shape(arr)[axis]
    return np.insert(arr, np.arange(size)[places], values, axis)


def in_rows(parts, dtype):
    """`np.r_[...]`: concatenated scalars and arrays."""
    made = ()
    for part in parts:
        made = (*made, np.array([part], dtype) if np.ndim(part) == 0 else part)
    return np.concatenate(made)


def in_columns(parts, dtype):
    """`np.c_[...]`: vectors as adjacent columns."""
    made = ()
    for part in parts:
        require(np.ndim(part) <= 2, "np.c_ of arrays with more than two axes has no rule.", "Use np.concatenate.")
        if np.ndim(part) == 0:
            made = (*made, np.array([[part]], dtype))
        elif np.ndim(part) == 1:
            made = (*made, np.expand_dims(part, 1))
        else:
            made = (*made, part)
    return np.concatenate(made, axis=1)
