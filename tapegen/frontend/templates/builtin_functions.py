"""Templates of builtins: Python source that is inlined at their calls."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

import tapegen.rules
from tapegen.frontend.templates import library_functions, mpi_methods, stdlib_functions, ufunc_methods
from tapegen.rules.gradient_modifiers import stop_gradient

_RULES = str(Path(tapegen.rules.__file__).parent)

COMPENSATES = sum([1.0, 1e100, -1e100]) == 1.0
"""Whether `sum` of Python floats is compensated (Neumaier): since Python 3.12."""


def is_own(file: str) -> bool:
    """Whether a source file belongs to tapegen: a template or a rule."""
    texts = (
        __file__,
        library_functions.__file__,
        stdlib_functions.__file__,
        mpi_methods.__file__,
        ufunc_methods.__file__,
    )
    return file in texts or file.startswith(_RULES)


def sum_of(items: Any, start: Any = 0) -> Any:
    """`sum(items)` of an array or a growing list."""
    total = start
    for item in items:
        total = total + item
    return total


def compensated_sum_of(items: Any, start: Any = 0) -> Any:
    """`sum(items)` where Python compensates the rounding errors of float additions."""
    total = start
    lost = 0
    for k, item in enumerate(items):
        if are_floats(start) or start == 0 or k > 0:
            total, lost = with_item(total, lost, item)
        else:
            total = start + item
    return with_lost(total, lost)


def with_item(total: Any, lost: Any, item: Any) -> Any:
    """A sum with one more item, and its accumulated rounding error (Neumaier, ZAMM 54, 1974)."""
    following = total + item
    if are_floats(item, following):
        if abs(total) >= abs(item):
            lost += (total - following) + item
        else:
            lost += (item - following) + total
    elif are_floats(total) and not are_floats(following):  # the sum is a NumPy float from here on
        following = with_lost(total, lost) + item
        lost = 0
    return following, lost


def are_floats(*values: Any) -> bool:
    """Whether values are Python floats; known at compile time."""
    return all(type(value) is float for value in values)


def with_lost(total: Any, lost: Any) -> Any:
    """A sum corrected by its rounding error, which has no derivative."""
    if are_floats(lost) and lost != 0.0 and math.isfinite(lost):
        return total + stop_gradient(lost)
    return total


def extreme(items: Any, better: Any, key: Any) -> Any:
    """`max(items, key=key)` or `min`: the first of the largest or smallest."""
    if len(items) == 0:
        raise ValueError("max() or min() of nothing")
    best = items[0]
    most = best if key is None else key(best)
    for k in range(1, len(items)):
        value = items[k] if key is None else key(items[k])
        if better(value, most):
            best = items[k]
            most = value
    return best


def power_modulo(base: int, exponent: int, modulus: int) -> int:
    """`pow(base, exponent, modulus)`."""
    if modulus == 0:
        raise ValueError("pow() 3rd argument cannot be 0")
    if exponent < 0:
        base = inverse_modulo(base, abs(modulus))
        exponent = -exponent
    power = 1 % modulus
    square = base % modulus
    while exponent > 0:
        if exponent % 2 == 1:
            power = power * square % modulus
        exponent //= 2
        if exponent > 0:
            square = square * square % modulus
    return power


def unless_empty(items: Any, default: Any, find: Any) -> Any:
    """`max(items, default=default)`, and `min`."""
    return find(items) if len(items) > 0 else default


def inverse_modulo(base: int, modulus: int) -> int:
    """The modular inverse of `base`, by Euclid's extended algorithm (Knuth, TAOCP 2, 4.5.2)."""
    divisor, rest = base % modulus, modulus
    inverse, following = 1, 0
    while rest != 0:
        quotient = divisor // rest
        divisor, rest = rest, divisor - quotient * rest
        inverse, following = following, inverse - quotient * following
    if divisor != 1:
        raise ValueError("base is not invertible for the given modulus")
    return inverse


def taken(items: Any, at: int) -> Any:
    """`items.pop(at)` of a growing list."""
    position = at + len(items) if at < 0 else at
    if not 0 <= position < len(items):
        raise IndexError("pop index out of range")
    found = items[position]
    for k in range(position + 1, len(items)):
        items[k - 1] = items[k]
    items.pop()
    return found


def place_of(items: Any, value: Any, absent: str | None) -> int:
    """`items.index(value)`."""
    for k, item in enumerate(items):
        if item == value:
            return k
    if absent is None:
        raise ValueError(f"{value!r} is not in list")
    raise ValueError(absent)


def count_of(items: Any, value: Any) -> int:
    """`items.count(value)`."""
    count = 0
    for item in items:
        if item == value:
            count += 1
    return count


def item_of(items: Any, key: Any) -> Any:
    """`operator.itemgetter(key)(items)`."""
    return items[key]


def put_in_order(items: Any, key: Any, reverse: bool) -> None:
    """`items.sort(key=key, reverse=reverse)`."""
    keys = []
    for item in items:
        keys.append(item if key is None else key(item))
    order = positions_in_order(keys, reverse)
    ordered = []
    for k in range(len(items)):
        ordered.append(items[order[k]])
    for k in range(len(items)):
        items[k] = ordered[k]


def positions_in_order(keys: Any, reverse: bool) -> Any:
    """The sorting permutation of a list, by a stable merge sort as in Python."""
    order = np.arange(len(keys))
    merged = np.arange(len(keys))
    width = 1
    while width < len(keys):
        for start in range(0, len(keys), 2 * width):
            middle = min(start + width, len(keys))
            stop = min(start + 2 * width, len(keys))
            i = start
            j = middle
            for k in range(start, stop):
                if i == middle:
                    from_right = True
                elif j == stop:
                    from_right = False
                elif reverse:
                    from_right = keys[order[i]] < keys[order[j]]
                else:
                    from_right = keys[order[j]] < keys[order[i]]
                if from_right:
                    merged[k] = order[j]
                    j += 1
                else:
                    merged[k] = order[i]
                    i += 1
        order[:] = merged
        width *= 2
    return order


def repeated(count: int, items: Any) -> Any:
    """`items * count` with a count that is known at run time."""
    made = []
    for _ in range(count):
        for item in items:
            made.append(item)
    return made


def copied(items: Any) -> Any:
    """`list(items)`."""
    made = []
    for item in items:
        made.append(item)
    return made


def joined(items: Any, more: Any) -> Any:
    """`items + more`, where one list is a growing list."""
    made = []
    for item in items:
        made.append(item)
    for item in more:
        made.append(item)
    return made


def extended(items: Any, more: Any) -> None:
    """`items.extend(more)` with a number of items that is known at run time."""
    for k in range(len(more)):  # as many as there are now: `items` may be `more`
        items.append(more[k])


def sliced(items: Any, lo: Any, hi: Any) -> Any:
    """`items[lo:hi]` of a growing list."""
    size = len(items)
    start = 0 if lo is None else lo
    stop = size if hi is None else hi
    if start < 0:
        start = max(size + start, 0)
    if stop < 0:
        stop = size + stop
    made = []
    for k in range(start, min(stop, size)):
        made.append(items[k])
    return made


def sliced_by_step(items: Any, lo: Any, hi: Any, step: Any) -> Any:
    """`items[lo:hi:step]` of a growing list."""
    size = len(items)
    first, last = (0, size) if step > 0 else (-1, size - 1)
    start = (first if step > 0 else last) if lo is None else lo if lo >= 0 else lo + size
    stop = (last if step > 0 else first) if hi is None else hi if hi >= 0 else hi + size
    made = []
    for k in range(min(max(start, first), last), min(max(stop, first), last), step):
        made.append(items[k])
    return made


def put_before(items: Any, position: Any, item: Any) -> None:
    """`items.insert(position, item)` of a growing list."""
    size = len(items)
    at = min(max(position if position >= 0 else position + size, 0), size)
    items.append(item)
    for k in range(size, at, -1):
        items[k] = items[k - 1]
    items[at] = item


def turned_round(items: Any) -> None:
    """`items.reverse()` of a growing list."""
    size = len(items)
    for k in range(size // 2):
        first = items[k]
        items[k] = items[size - 1 - k]
        items[size - 1 - k] = first


def emptied(items: Any) -> None:
    """`items.clear()` of a growing list."""
    for _ in range(len(items)):
        items.pop()


def elementwise(func: Any, *args: Any) -> Any:
    """A scalar function applied to every element of arrays that are broadcast together."""
    like = args[0]
    for arg in args[1:]:
        like = like + arg
    flat = []
    for arg in args:
        flat.append(np.ravel(np.broadcast_to(arg, np.shape(like))))
    made = np.empty(np.size(like), dtype=like.dtype)
    for k in range(np.size(like)):
        made[k] = func(*[values[k] for values in flat])
    return np.reshape(made, np.shape(like))


def vectorized(func: Any, dtype: Any, *args: Any) -> Any:
    """`np.vectorize(func)(*args)`: the type of the results is that of the first one."""
    arrays = np.broadcast_arrays(*args)
    flat = [np.ravel(array) for array in arrays]
    made = []
    for k in range(np.size(arrays[0])):
        made.append(func(*[values[k] for values in flat]))
    return np.reshape(np.array(made, dtype=dtype), np.shape(arrays[0]))


def concatenated(items: Any) -> Any:
    """`np.concatenate(items)` of a growing list."""
    if len(items) == 0:
        raise ValueError("need at least one array to concatenate")
    total = 0
    for item in items:
        total += len(item)
    made = np.empty((total, *np.shape(items[0])[1:]), dtype=items[0].dtype)
    at = 0
    for item in items:
        made[at : at + len(item)] = item
        at += len(item)
    return made


def concatenated_along(items: Any, axis: int) -> Any:
    """`np.concatenate(items, axis)` of a list that grows, along another axis than the first."""
    turned = [np.moveaxis(item, axis, 0) for item in items]
    return np.ascontiguousarray(np.moveaxis(concatenated(turned), 0, axis))


def selected(array: Any, chosen: Any) -> Any:
    """`array[chosen]` of a single bool: one more axis in front, with all of the array or nothing."""
    return np.copy(np.asarray(array)[np.newaxis][: 1 if chosen else 0])


def store_selected(array: Any, chosen: Any, value: Any) -> None:
    """`array[chosen] = value` of a single bool."""
    array[np.newaxis][: 1 if chosen else 0] = value


def store_where(array: Any, chosen: Any, value: Any) -> None:
    """`array[chosen] = value` for a zero-dimensional array and a single bool."""
    if chosen:
        array[()] = value


def of_distribution(method: Any, parameters: Any, named: Any, *args: Any) -> Any:
    """A method of a distribution of `scipy.stats` with parameters."""
    return method(*args, *parameters, **named)


def axis_by_step(start: Any, stop: Any, step: Any, real: bool) -> Any:
    """One axis of `np.mgrid[start:stop:step]`."""
    size = max(math.ceil((stop - start) / step), 0)
    places = np.arange(float(size)) if real else np.arange(size)
    return places * step + start


def axis_of_size(start: Any, stop: Any, size: int) -> Any:
    """One axis of `np.mgrid[start : stop : size * 1j]`."""
    step = size if size == 1 else (stop - start) / float(size - 1)
    return np.arange(float(size)) * step + start


def dense_grid(axes: Any) -> Any:
    """`np.mgrid` of several axes."""
    return np.stack(np.meshgrid(*axes, indexing="ij"))


def open_grid(axes: Any) -> Any:
    """`np.ogrid` of several axes."""
    count = len(axes)
    return tuple([axes[k].reshape((1,) * k + (-1,) + (1,) * (count - k - 1)) for k in range(count)])
