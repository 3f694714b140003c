"""In-place functions, which write into their first argument, decomposed into stores."""

from __future__ import annotations

import numpy as np

from tapegen.rules.helpers import flat, open_range, require
from tapegen.rules.registry import expands, fixed

MASK = fixed(np.array([[True, False, True], [False, True, True]]))


def again(values, count):
    """The first `count` of the values, repeated cyclically."""
    row = flat(np.asarray(values))
    return row[np.arange(count) % np.size(row)]


def check_casting(values, dtype, casting):
    """Raise TypeError where NumPy does not convert: its message comes from plain Python."""
    if not np.can_cast(np.result_type(values), dtype, casting):
        raise TypeError("Cannot cast")


def check_array_casting(values, dtype):
    """`np.place` and `np.putmask` convert numbers and sequences by force, but arrays only where it is safe."""
    if np.ndim(values) > 0 and not isinstance(values, list | tuple):
        check_casting(values, dtype, "safe")


def as_stored(values, dtype):
    """Values, a sequence of numbers as an array of this dtype: NumPy raises where one of them has none."""
    return np.asarray(values, dtype=dtype) if isinstance(values, list | tuple) else values


@expands(np.copyto, shapes=[(2, 3), (3,)], written=True, of_complex=True)
def copyto(dst, src, casting="same_kind", where=True):
    require(np.ndim(dst) > 0 or np.ndim(src) == 0, "np.copyto cannot put an array into a number.", "Pass an element.")
    number = np.ndim(src) == 0 and casting == "safe"  # numbers of Python have no precision
    check_casting(np.asarray(src), dst.dtype, "same_kind" if number else casting)
    if isinstance(where, bool):
        if where:
            dst[...] = src
    else:
        require(
            np.ndim(where) <= np.ndim(dst), "np.copyto has no rule for a where= of more axes.", "Drop its first axis."
        )
        dst[...] = np.where(where, src, dst)


@expands(np.fill_diagonal, shapes=[(3, 4), ()], written=True, of_complex=True)
def fill_diagonal(a, val, wrap=False):
    require(not wrap, "np.fill_diagonal(wrap=True) has no rule.", "Write a loop.")
    require(np.ndim(a) > 1, "np.fill_diagonal needs an array of two axes or more.", "Assign the elements.")
    size = np.shape(a)[0]
    for n in np.shape(a)[1:]:
        if np.ndim(a) > 2 and n != size:
            raise ValueError("All dimensions of input must be of equal length")
        size = min(size, n)
    places = (np.arange(size),) * np.ndim(a)
    if np.ndim(val) == 0:
        a[places] = val
    else:
        a[places] = again(val, size)


@expands(np.place, shapes=[(2, 3), MASK, (2,)], written=True, of_complex=True)
def place(arr, mask, vals):
    if np.ndim(mask) != np.ndim(arr):
        mask = np.reshape(mask, np.shape(arr))
    check_array_casting(vals, arr.dtype)
    arr[mask] = again(as_stored(vals, arr.dtype), np.count_nonzero(mask))


@expands(np.putmask, shapes=[(2, 3), MASK, (2, 3)], written=True, of_complex=True)
def putmask(a, mask, values):
    if np.ndim(mask) != np.ndim(a):
        mask = np.reshape(mask, np.shape(a))
    check_array_casting(values, a.dtype)
    if np.ndim(values) == 0:
        a[mask] = values
    else:
        row = flat(np.asarray(as_stored(values, a.dtype)))
        a[mask] = row[np.flatnonzero(mask) % np.size(row)]


@expands(np.put, shapes=[(2, 3), fixed(np.array([4, -6])), (2,)], written=True, of_complex=True)
def put(a, ind, v, mode="raise"):
    require(mode in ("raise", "wrap", "clip"), "np.put has no such mode.", "Take 'raise', 'wrap' or 'clip'.")
    require(np.ndim(a) > 0, "np.put needs an array with an axis.", "Assign the number.")
    ind = flat(np.asarray(ind))
    size = np.size(a)
    if mode == "wrap":
        rest = ind % size
    elif mode == "clip":
        rest = np.minimum(np.maximum(ind, 0), size - 1)
    else:
        rest = np.where(ind < -size, size, np.where(ind < 0, ind + size, ind))  # out-of-range ones fail here first
    places = ()
    for n in np.shape(a)[:0:-1]:
        places = (rest % n,) + places
        rest = rest // n
    if np.ndim(v) == 0:
        a[(rest,) + places] = v
    else:
        a[(rest,) + places] = again(as_stored(v, a.dtype), np.size(ind))


@expands(
    np.put_along_axis,
    shapes=[(2, 3), fixed(np.array([[2, 0], [1, 2]])), (2, 2), fixed(1)],
    written=True,
    of_complex=True,
)
def put_along_axis(arr, indices, values, axis):
    require(axis is not None, "np.put_along_axis(axis=None) has no rule.", "Flatten the array first.")
    axis = axis % np.ndim(arr)
    shape = np.shape(arr)[:axis] + (np.shape(indices)[axis],) + np.shape(arr)[axis + 1 :]
    places = ()
    for k, n in enumerate(np.shape(arr)):
        along = indices
        if k != axis:
            along = open_range(n, k, np.ndim(arr))
        places = places + (np.ravel(np.broadcast_to(along, shape)),)
    arr[places] = np.ravel(np.broadcast_to(values, shape))
