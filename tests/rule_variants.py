"""The calls of rules once more, with other shapes: none of them is written by hand.

Of a call with arrays of 3 x 4 elements there are those with 1 x 4, 0 x 4, 3 x 1, 1 x 1, ... elements, with numbers in
the place of arrays, with another axis in front, and with views whose elements do not lie side by side.  NumPy says
which of them there are: what it refuses must be refused as it refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapegen.testing import Case


def arrays(value: Any) -> Iterator[np.ndarray]:
    """The arrays with axes, in order."""
    if isinstance(value, np.ndarray) and value.ndim:
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from arrays(item)
    elif isinstance(value, dict):
        yield from arrays(tuple(value.values()))


def changed(value: Any, change: Callable[[np.ndarray], Any]) -> Any:
    """The same arguments with other arrays."""
    if isinstance(value, np.ndarray) and value.ndim:
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)([changed(item, change) for item in value])
    if isinstance(value, dict):
        return {key: changed(item, change) for key, item in value.items()}
    return value


def only(place: int, change: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    """A change of the array at one place."""
    seen = iter(range(1000))
    return lambda array: change(array) if next(seen) == place else array


def shorter(length: int, size: int) -> Callable[[np.ndarray], np.ndarray]:
    """Every axis with this length has that many elements."""
    return lambda array: np.array(array[tuple(slice(size if n == length else n) for n in array.shape)])


def first(size: int, axis: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: np.array(array[(slice(None),) * axis + (slice(size),)])


def smallest(size: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: np.array(array[(slice(size),) * array.ndim])


def number(array: np.ndarray) -> Any:
    return array.flat[0]


def without_axes(array: np.ndarray) -> np.ndarray:
    return np.array(array.flat[0])


def in_front(copies: int) -> Callable[[np.ndarray], np.ndarray]:
    """Another axis; what lies along it differs, for a maximum has no derivative where two are largest."""
    return lambda array: np.stack([array + 0.171 * k if array.dtype.kind in "fc" else array for k in range(copies)])


def apart(array: np.ndarray) -> np.ndarray:
    """Every other element of an array in Fortran's order, backwards along its first axis."""
    wide = np.asfortranarray(np.repeat(array, 2, axis=-1))
    return wide[::-1, ..., ::2][::-1] if array.ndim > 1 else wide[::-1][1::2][::-1]


def variants(case: Case) -> Iterator[tuple[str, Case]]:
    """The call with other shapes, each with a name."""
    found = list(arrays(case))
    if not found or not all(array.size for array in found):
        return
    lengths = sorted({n for array in found for n in array.shape if n > 1})
    yield "apart", changed(case, apart)
    for size in (0, 1):
        for length in lengths:
            yield f"{length} -> {size}", changed(case, shorter(length, size))
        yield f"all -> {size}", changed(case, smallest(size))
    yield "without axes", changed(case, without_axes)
    yield "numbers", changed(case, number)
    yield "one in front", changed(case, in_front(1))
    for place, array in enumerate(found):
        if len(found) > 1:
            for size in (0, 1):
                for axis in range(array.ndim):
                    if array.shape[axis] > 1:
                        yield f"{place}: axis {axis} -> {size}", changed(case, only(place, first(size, axis)))
            yield f"{place}: without axes", changed(case, only(place, without_axes))
            yield f"{place}: number", changed(case, only(place, number))
        for copies in (0, 1, 2):
            if copies == 0:
                yield f"{place}: none in front", changed(case, only(place, lambda a: np.stack([a])[:0]))
            else:
                yield f"{place}: {copies} in front", changed(case, only(place, in_front(copies)))
