"""Shape manipulation: functions that rearrange elements.

Where the result is a view, the compiler takes the same view of the cotangent; these rules apply where it is a copy.
"""

from __future__ import annotations

import numpy as np

from tapegen.ir.intrinsics import sum_to, transpose_view
from tapegen.rules.helpers import (
    axes_tuple,
    compile_time,
    even_axes,
    flat,
    inverse_permutation,
    require,
    slice_axis,
    unflat,
)
from tapegen.rules.registry import fixed, linear
from tapegen.rules.signal.stencils import places_beyond

# ---- shape ---------------------------------------------------------------------------------------------------------


@linear(np.reshape, in_="a", shapes=[(3, 4), fixed((2, 6))], of_complex=True)
def reshape(a, shape, order="C", *, out_bar):
    require(order in ("C", "F"), "np.reshape(order='A') depends on the layout in memory.", "Use order 'C' or 'F'.")
    if order == "F":
        return np.reshape(out_bar, np.shape(a), order="F")
    return np.reshape(out_bar, np.shape(a))


@linear(np.ravel, in_="a", shapes=[(3, 4)], of_complex=True)
def ravel(a, order="C", *, out_bar):
    require(order in ("C", "F"), "np.ravel(order='A' or 'K') depends on the memory layout.", "Use order 'C' or 'F'.")
    if order == "F":
        return np.reshape(out_bar, np.shape(a), order="F")
    return np.reshape(out_bar, np.shape(a))


@linear(np.squeeze, in_="a", shapes=[(3, 1, 4, 1)], of_complex=True)
def squeeze(a, axis=None, *, out_bar):
    return np.reshape(out_bar, np.shape(a))


@linear(np.expand_dims, in_="a", shapes=[(3, 4), fixed(1)], of_complex=True)
def expand_dims(a, axis, *, out_bar):
    return np.reshape(out_bar, np.shape(a))


@linear(np.atleast_1d, np.atleast_2d, np.atleast_3d, in_="a", shapes=[(3,)], of_complex=True)
def atleast_nd(a, *, out_bar):
    return np.reshape(out_bar, np.shape(a))


@linear(np.broadcast_to, in_="array", shapes=[(3, 1), fixed((2, 3, 4))], of_complex=True)
def broadcast_to(array, shape, *, out_bar):
    return out_bar  # un-broadcasting is the compiler's


@linear(np.broadcast_arrays, in_="args", shapes=[(3, 1), (4,)], of_complex=True)
def broadcast_arrays(*args, out_bar):
    return out_bar  # un-broadcasting is the compiler's


@linear(np.lib.stride_tricks.sliding_window_view, in_="x", shapes=[(5,), fixed(3)], of_complex=True)
def sliding_window_view(x, window_shape, axis=None, *, out_bar):
    sizes = window_shape if isinstance(window_shape, tuple) else (window_shape,)
    axes = axes_tuple(axis, np.ndim(x))
    for k in range(len(sizes) - 1, -1, -1):
        out_bar = _sum_of_windows(out_bar, axes[k], sizes[k])
    return out_bar


def _sum_of_windows(windows, axis, size):
    """An array with the sum of all that the windows along an axis show of each element; the last axis is gone."""
    rows = windows if axis == 0 else np.moveaxis(windows, axis, 0)
    count = np.shape(rows)[0]
    total = np.zeros((count + (size - 1),) + np.shape(rows)[1:-1], dtype=rows.dtype)
    for k in range(size):
        total[k : k + count] += rows[..., k]
    return total if axis == 0 else np.moveaxis(total, 0, axis)


# ---- order of axes -------------------------------------------------------------------------------------------------


@linear(transpose_view, in_="a", shapes=[(2, 3, 4)], of_complex=True)
def transpose_attribute(a, *, out_bar):
    """`a.T`."""
    return out_bar.T


@linear(np.transpose, in_="a", shapes=[(2, 3, 4)], of_complex=True)
def transpose(a, axes=None, *, out_bar):
    if axes is None:
        return out_bar.T
    return np.transpose(out_bar, inverse_permutation(axes))


@linear(np.matrix_transpose, np.linalg.matrix_transpose, in_="x", shapes=[(2, 3, 4)], of_complex=True)
def matrix_transpose(x, *, out_bar):
    return np.swapaxes(out_bar, -1, -2)


@linear(np.swapaxes, in_="a", shapes=[(2, 3, 4), fixed(0), fixed(2)], of_complex=True)
def swapaxes(a, axis1, axis2, *, out_bar):
    return np.swapaxes(out_bar, axis1, axis2)


@linear(np.moveaxis, in_="a", shapes=[(2, 3, 4), fixed(0), fixed(2)], of_complex=True)
def moveaxis(a, source, destination, *, out_bar):
    return np.moveaxis(out_bar, destination, source)


@linear(np.rollaxis, in_="a", shapes=[(2, 3, 4), fixed(2)], of_complex=True)
def rollaxis(a, axis, start=0, *, out_bar):
    axis = axis % np.ndim(a)
    end = start + np.ndim(a) if start < 0 else start
    return np.moveaxis(out_bar, end - 1 if axis < end else end, axis)


# ---- order of elements ---------------------------------------------------------------------------------------------


@linear(np.flip, in_="m", shapes=[(3, 4)], of_complex=True)
def flip(m, axis=None, *, out_bar):
    return np.flip(out_bar, axis)


@linear(np.flipud, in_="m", shapes=[(3, 4)], of_complex=True)
def flipud(m, *, out_bar):
    return out_bar[::-1]


@linear(np.fliplr, in_="m", shapes=[(3, 4)], of_complex=True)
def fliplr(m, *, out_bar):
    return out_bar[:, ::-1]


@linear(np.rot90, in_="m", shapes=[(3, 4)], of_complex=True)
def rot90(m, k=1, axes=(0, 1), *, out_bar):
    return np.rot90(out_bar, -k, axes)


@linear(np.roll, in_="a", shapes=[(3, 4), fixed(5)], of_complex=True)
def roll(a, shift, axis=None, *, out_bar):
    if isinstance(shift, tuple):
        back = ()
        for k in shift:
            back = back + (-k,)
        return np.roll(out_bar, back, axis)
    return np.roll(out_bar, -shift, axis)


# ---- copies of elements --------------------------------------------------------------------------------------------


@linear(np.repeat, in_="a", shapes=[(3, 4), fixed(2)], of_complex=True)
def repeat(a, repeats, axis=None, *, out_bar):
    if axis is None or np.ndim(a) == 0:
        return unflat(repeat_bar(out_bar, flat(a), repeats, 0), a)
    return repeat_bar(out_bar, a, repeats, axis % np.ndim(a))


def repeat_bar(out_bar, a, repeats, axis):
    """Cotangent of the array argument of `np.repeat` along an axis."""
    if np.ndim(repeats) == 0:
        runs = np.shape(a)[: axis + 1] + (repeats,) + np.shape(a)[axis + 1 :]
        return np.sum(np.reshape(out_bar, runs), axis=axis + 1)
    a_bar = np.zeros_like(a)
    source = np.repeat(np.arange(np.shape(a)[axis]), repeats)
    rows_bar = np.moveaxis(a_bar, axis, 0)
    np.add.at(rows_bar, source, np.moveaxis(out_bar, axis, 0))
    return a_bar


@linear(np.tile, in_="A", shapes=[(2, 3), fixed((2, 2))], of_complex=True)
def tile(A, reps, *, out_bar):
    if not isinstance(reps, tuple):
        reps = (reps,)
    # every axis as (copies, size); the shorter of shape and reps is padded with leading ones
    reps = (1,) * (np.ndim(A) - len(reps)) + reps
    shape = (1,) * (len(reps) - np.ndim(A)) + np.shape(A)
    blocks = ()
    for k in axes_tuple(None, len(reps)):
        blocks = blocks + (reps[k], shape[k])
    summed = np.sum(np.reshape(out_bar, blocks), axis=even_axes(len(reps)))
    return np.reshape(summed, np.shape(A))


@linear(sum_to, in_="x", shapes=[(3, 4), (1, 4)], of_complex=True)
def sum_to_(x, target, *, out_bar):
    return np.broadcast_to(out_bar, np.shape(x))


@linear(np.pad, in_="array", shapes=[(3, 4), fixed(1)], constant=("constant_values",), of_complex=True)
def pad(array, pad_width, mode="constant", *, constant_values=0, out_bar):
    if mode == "constant":
        inner = out_bar
        for axis in axes_tuple(None, np.ndim(array)):
            before = pad_before(pad_width, axis)
            inner = slice_axis(inner, axis, before, before + np.shape(array)[axis])
        return inner
    for axis in axes_tuple(None, np.ndim(array)):
        n = np.shape(array)[axis]
        places = places_beyond(n, pad_before(pad_width, axis), pad_after(pad_width, axis), pad_edge(mode))
        beyond = np.moveaxis(out_bar, axis, 0)
        inside = np.zeros((n,) + np.shape(beyond)[1:], dtype=out_bar.dtype)
        np.add.at(inside, places, beyond)
        out_bar = np.moveaxis(inside, 0, axis)
    return out_bar


@compile_time
def pad_edge(mode):
    """The boundary mode of `np.pad`, in the terms of `places_beyond`."""
    edges = {"edge": "nearest", "reflect": "mirror", "symmetric": "reflect", "wrap": "wrap"}
    require(
        mode in edges,
        f"np.pad(mode={mode!r}) has no rule.",
        "Join the parts with np.concatenate; in a decorated function every mode but 'empty' has a derivative.",
    )
    return edges[mode]


def pad_before(pad_width, axis):
    """The padding width of `np.pad` before an axis: `n`, `(n,)`, `(before, after)` or a pair for each axis."""
    if not isinstance(pad_width, tuple | list):
        return pad_width
    if not isinstance(pad_width[0], tuple | list):
        return pad_width[0]
    if len(pad_width) == 1:
        return pad_width[0][0]
    return pad_width[axis][0]


def pad_after(pad_width, axis):
    """The padding width of `np.pad` after an axis."""
    if not isinstance(pad_width, tuple | list):
        return pad_width
    if not isinstance(pad_width[0], tuple | list):
        return pad_width[-1]
    if len(pad_width) == 1:
        return pad_width[0][-1]
    return pad_width[axis][-1]


# ---- triangles and diagonals ---------------------------------------------------------------------------------------


@linear(np.triu, in_="m", shapes=[(3, 4)], of_complex=True)
def triu(m, k=0, *, out_bar):
    return np.triu(out_bar, k)


@linear(np.tril, in_="m", shapes=[(3, 4)], of_complex=True)
def tril(m, k=0, *, out_bar):
    return np.tril(out_bar, k)


@linear(np.diag, in_="v", shapes=[(4,)], of_complex=True)
def diag(v, k=0, *, out_bar):
    if np.ndim(v) == 1:
        return np.diag(out_bar, k)
    v_bar = np.zeros_like(v)
    row = np.arange(np.size(out_bar))
    v_bar[row + max(0, -k), row + max(0, k)] = out_bar
    return v_bar


@linear(np.diagflat, in_="v", shapes=[(4,)], of_complex=True)
def diagflat(v, k=0, *, out_bar):
    return np.reshape(np.diag(out_bar, k), np.shape(v))


@linear(np.diagonal, in_="a", shapes=[(3, 4)], of_complex=True)
def diagonal(a, offset=0, axis1=0, axis2=1, *, out_bar):
    a_bar = np.zeros_like(a)
    row = np.arange(np.shape(out_bar)[-1])
    if np.ndim(a) == 2 and axis1 % 2 == 0:
        a_bar[row + max(0, -offset), row + max(0, offset)] = out_bar
        return a_bar
    matrix_bar = np.moveaxis(a_bar, (axis1, axis2), (0, 1))
    matrix_bar[row + max(0, -offset), row + max(0, offset)] = np.moveaxis(out_bar, -1, 0)
    return a_bar


@linear(np.trace, in_="a", shapes=[(3, 4)], of_complex=True)
def trace(a, offset=0, axis1=0, axis2=1, *, out_bar):
    unit = np.eye(np.shape(a)[axis1], np.shape(a)[axis2], offset, dtype=a.dtype)
    if np.ndim(a) == 2 and axis1 % 2 == 0:
        return out_bar * unit
    return np.moveaxis(np.expand_dims(out_bar, (-2, -1)) * unit, (-2, -1), (axis1, axis2))
