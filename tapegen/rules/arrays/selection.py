"""Selection of elements (compress, delete, insert, repeat): gathers whose indices carry no derivative."""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import axes_tuple, flat, index_axis, one_of, require
from tapegen.rules.registry import expands, fixed

LIKE = "Pass the choices as a list."

# ---- compress --------------------------------------------------------------------------------------------------------


@expands(np.extract, shapes=[fixed(np.array([[True, False, True], [False, True, True]])), (2, 3)], of_complex=True)
def extract(condition, arr):
    return flat(arr)[np.flatnonzero(condition)]


@expands(np.compress, shapes=[fixed(np.array([True, False, True])), (6,)], of_complex=True)
def compress(condition, a, axis=None):
    if axis is None:
        return flat(a)[np.flatnonzero(condition)]
    return np.take(a, np.flatnonzero(condition), axis=axis)


@expands(np.choose, shapes=[fixed(np.array([1, 0, 1])), [(3,), (3,)]], of_complex=True)
def choose(a, choices, *, mode="raise"):
    if isinstance(choices, tuple | list):
        choices = np.stack(np.broadcast_arrays(*choices, a)[:-1])
        a = np.broadcast_to(a, np.shape(choices)[1:])
    one_of("mode", mode, ("raise", "wrap", "clip", 2, 1, 0))
    if mode == "clip" or mode == 0:
        a = np.clip(a, 0, np.shape(choices)[0] - 1)
    elif mode == "wrap" or mode == 1:
        a = a % np.shape(choices)[0]
    require(np.ndim(a) == np.ndim(choices) - 1, "np.choose has a rule for indices of the rank of each choice.", LIKE)
    return np.take_along_axis(choices, np.expand_dims(a, 0), axis=0)[0]


@expands(np.trim_zeros, shapes=[fixed(np.array([0.0, 0.0, 1.5, 0.0, -2.0, 0.0]))], of_complex=True)
def trim_zeros(filt, trim="fb", axis=None):
    """The places where zeros end are piecewise constant."""
    require(np.ndim(filt) == 1, "np.trim_zeros has a rule for vectors only.", "Cut the array with slices.")
    end = np.ones(1, dtype=np.bool_)
    nonzero = filt != 0.0
    start = 0
    if "f" in trim or "F" in trim:
        start = np.argmax(np.concatenate((nonzero, end)))
    stop = np.size(filt)
    if "b" in trim or "B" in trim:
        stop = stop - np.argmax(np.concatenate((nonzero[::-1], end)))
    return filt[start:stop]


# ---- delete and insert -----------------------------------------------------------------------------------------------


@expands(np.delete, shapes=[(6,), fixed(np.array([1, 4]))], of_complex=True)
def delete(arr, obj, axis=None):
    if axis is None:
        arr = flat(arr)
        axis = 0
    kept = np.ones(np.shape(arr)[axis], dtype=np.bool_)
    kept[obj] = False
    return np.take(arr, np.flatnonzero(kept), axis=axis)


@expands(np.insert, shapes=[(6,), fixed(2), (3,)], of_complex=True)
def insert(arr, obj, values, axis=None):
    if axis is None:
        arr = flat(arr)
        axis = 0
    axis = axis % np.ndim(arr)
    rows = np.moveaxis(arr, axis, 0)
    rank = np.ndim(arr)
    of_numbers = np.result_type(obj) != np.bool_  # NumPy before 2.4 used masks as 0 and 1
    require(of_numbers, "np.insert has no rule for masks.", "Pass np.flatnonzero of the mask.")
    values = np.asarray(values, dtype=arr.dtype)  # the result has the type of the array
    if np.ndim(values) < rank:
        values = np.expand_dims(values, axes_tuple(None, rank - np.ndim(values)))
    if np.ndim(obj) == 0:
        # NumPy places values for one position along the first axis
        size = np.shape(values)[0]
        block = np.broadcast_to(values, (size,) + np.shape(rows)[1:])
        place = obj + np.shape(rows)[0] if obj < 0 else obj
        if place < 0 or place > np.shape(rows)[0]:
            raise ValueError("index is out of bounds for the axis")
        joined = np.concatenate((rows[:place], block, rows[place:]), axis=0)
        return np.moveaxis(joined, 0, axis)
    values = np.squeeze(values, axes_tuple(None, np.ndim(values) - rank))  # a store drops leading axes of size 1
    count = np.shape(values)[axis] if np.size(obj) == 1 else np.size(obj)  # all values are inserted at one position
    obj = np.broadcast_to(obj, (count,))
    total = np.shape(rows)[0] + count
    places = np.where(obj < 0, obj + np.shape(rows)[0], obj)
    order = np.argsort(places, kind="stable")
    new = np.zeros(count, dtype=np.int64)
    new[order] = places[order] + np.arange(count)
    old = np.ones(total, dtype=np.bool_)
    old[new] = False
    joined = np.zeros((total,) + np.shape(rows)[1:], dtype=arr.dtype)
    joined[np.flatnonzero(old)] = rows
    joined[new] = np.moveaxis(values, axis, 0)
    return np.moveaxis(joined, 0, axis)


# ---- repeated --------------------------------------------------------------------------------------------------------


@expands(np.resize, shapes=[(2, 3), fixed((4, 2))], of_complex=True)
def resize(a, new_shape):
    """All elements in a row, again and again."""
    if not isinstance(new_shape, tuple | list):
        new_shape = (new_shape,)
    total = 1
    for n in new_shape:
        if n < 0:
            raise ValueError("all elements of `new_shape` must be non-negative")
        total = total * n
    return np.reshape(flat(a)[np.arange(total) % np.size(a)], new_shape)


# ---- blocks ----------------------------------------------------------------------------------------------------------


@expands(np.block, shapes=[[[(2, 2), (2, 1)], [(1, 2), (1, 1)]]], written=True, of_complex=True)
def block(arrays):
    rank = max(depth_of(arrays), highest_rank(arrays))
    whole = block_of(arrays, depth_of(arrays), rank)
    return whole if isinstance(arrays, list | tuple) else np.copy(whole)  # in a list, `np.concatenate` copies


def block_of(arrays, depth, rank):
    """Nested lists of arrays, concatenated along the last axis at the innermost level, along earlier ones outside."""
    if not isinstance(arrays, list | tuple):
        return np.expand_dims(arrays, axes_tuple(None, rank - np.ndim(arrays)))
    parts = ()
    for part in arrays:
        parts = parts + (block_of(part, depth - 1, rank),)
    return np.concatenate(parts, axis=-depth)


def depth_of(arrays):
    """The nesting depth of lists."""
    if not isinstance(arrays, list | tuple):
        return 0
    return 1 + depth_of(arrays[0])


def highest_rank(arrays):
    """The largest number of axes among the arrays of nested lists."""
    if not isinstance(arrays, list | tuple):
        return np.ndim(arrays)
    rank = 0
    for part in arrays:
        rank = max(rank, highest_rank(part))
    return rank


@expands(np.unstack, shapes=[(3, 2)], written=True, of_complex=True)
def unstack(x, *, axis=0):
    parts = ()
    for k in axes_tuple(None, np.shape(x)[axis]):
        parts = parts + (index_axis(x, axis, k),)  # a view, as in NumPy
    return parts
