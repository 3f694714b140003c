"""Templates of methods and keywords of NumPy functions: Python source that is inlined at their calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegen.rules.helpers import axes_tuple, lanes


def folded(ufunc: Any, a: Any, axis: Any = 0, keepdims: bool = False, identity: Any = None) -> Any:
    """`ufunc.reduce(a, axis)`: the function applied from the first row to the last, or from its identity on."""
    rows = lanes(a, axis)
    begin = 0
    if identity is not None:
        total = np.full(np.shape(rows)[1:], identity, dtype=rows.dtype)[()]
    else:
        total = np.copy(rows[0]) if np.ndim(rows) > 1 else rows[0]
        begin = 1
    for k in range(begin, np.shape(rows)[0]):
        total = ufunc(total, rows[k])
    return np.expand_dims(total, axes_tuple(axis, np.ndim(a))) if keepdims else total


def scanned(ufunc: Any, a: Any, axis: Any = 0) -> Any:
    """`ufunc.accumulate(a, axis)`."""
    rows = np.moveaxis(np.copy(a), axis, 0)
    for k in range(1, np.shape(rows)[0]):
        rows[k] = ufunc(rows[k - 1], rows[k])
    return np.moveaxis(rows, 0, axis)


def stretch(indices: Any, k: Any, size: Any) -> Any:
    """The start index of the k-th reduction of `reduceat`, and that of the next one."""
    if indices[k] < 0:
        raise IndexError("reduceat: an index is out of bounds")
    return indices[k], indices[k + 1] if k + 1 < np.size(indices) else size


def reduced_between(reduction: Any, a: Any, indices: Any, axis: Any = 0) -> Any:
    """`ufunc.reduceat(a, indices, axis)`: each from its index up to the next one, or its own row alone."""
    rows = np.moveaxis(a, axis, 0)
    count = np.size(indices)
    out = np.zeros((count,) + np.shape(rows)[1:], dtype=a.dtype)
    for k in range(count):
        start, stop = stretch(indices, k, np.shape(rows)[0])
        if start < stop:
            out[k] = reduction(rows[start:stop], axis=0)
        else:
            out[k] = rows[start]
    return np.moveaxis(out, 0, axis)


def folded_between(ufunc: Any, a: Any, indices: Any, axis: Any = 0) -> Any:
    """`ufunc.reduceat(a, indices, axis)` of a function that has no reduction of its own."""
    rows = np.moveaxis(a, axis, 0)
    count = np.size(indices)
    out = np.zeros((count,) + np.shape(rows)[1:], dtype=a.dtype)
    for k in range(count):
        start, stop = stretch(indices, k, np.shape(rows)[0])
        out[k] = rows[start]
        for j in range(start + 1, stop):
            out[k] = ufunc(out[k], rows[j])
    return np.moveaxis(out, 0, axis)


def numbered(a: Any) -> Any:
    """The flat index of each element of an array, in C order."""
    return np.reshape(np.arange(np.size(a)), np.shape(a))


def place_of(a: Any, number: Any) -> Any:
    """The index of the element with this flat index."""
    if np.ndim(a) == 1:
        return (number,)
    place: Any = ()
    for n in np.shape(a)[:0:-1]:
        place = (number % n,) + place
        number = number // n
    return (number,) + place


def place_in_flat(a: Any, number: Any) -> Any:
    """The index of `a.flat[number]`."""
    size = np.size(a)
    if number < -size or number >= size:
        raise IndexError(f"index {number} is out of bounds for size {size}")
    return place_of(a, number % size)


def each_at(ufunc: Any, a: Any, positions: Any, values: Any) -> None:
    """`ufunc.at(a, indices, values)` of two operands."""
    row = np.ravel(positions)
    if np.ndim(values) > 0:
        values = np.ravel(np.broadcast_to(values, np.shape(positions)))
    for k in range(np.size(row)):
        place = place_of(a, row[k])
        a[place] = ufunc(a[place], values[k] if np.ndim(values) > 0 else values)


def each_changed_at(ufunc: Any, a: Any, positions: Any) -> None:
    """`ufunc.at(a, indices)` of one operand."""
    row = np.ravel(positions)
    for k in range(np.size(row)):
        place = place_of(a, row[k])
        a[place] = ufunc(a[place])


def mean_where(a: Any, where: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """`np.mean(a, where=...)`."""
    total = np.sum(np.where(where, a, 0.0), axis=axis, keepdims=keepdims)
    return total / np.sum(np.where(where, np.ones_like(a), 0.0), axis=axis, keepdims=keepdims)


def var_where(a: Any, where: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
    """`np.var(a, where=...)`."""
    taken = np.where(where, np.ones_like(a), 0.0)
    mean = np.sum(np.where(where, a, 0.0), axis=axis, keepdims=True) / np.sum(taken, axis=axis, keepdims=True)
    squares = np.square(np.where(where, a - mean, 0.0))
    count = np.sum(taken, axis=axis, keepdims=keepdims) - ddof
    return np.sum(squares, axis=axis, keepdims=keepdims) / count


def std_where(a: Any, where: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
    """`np.std(a, where=...)`; where all are equal its derivative is 0."""
    spread = var_where(a, where, axis, ddof, keepdims)
    return np.sqrt(np.where(spread == 0.0, 1.0, spread)) * (spread != 0.0)


def listed(a: Any) -> Any:
    """`a.tolist()` of a vector."""
    made = []
    for k in range(np.size(a)):
        made.append(float(a[k]))
    return made


def indices(dimensions: Any, dtype: Any = int) -> Any:
    """`np.indices(dimensions)`: the position of each element, along each axis."""
    rank = len(dimensions)
    made = np.empty((rank, *dimensions), dtype)
    for k in range(rank):
        made[k] = np.reshape(np.arange(dimensions[k]), (1,) * k + (-1,) + (1,) * (rank - k - 1))
    return made
