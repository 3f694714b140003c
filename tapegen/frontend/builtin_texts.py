"""What some builtins do, as Python that is written out in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tapegen.rules
from tapegen.frontend import ufunc_texts

_RULES = str(Path(tapegen.rules.__file__).parent)


def is_own(file: str) -> bool:
    """Whether a text is one of tapegen's own: of a builtin, or of a rule."""
    return file in (__file__, ufunc_texts.__file__) or file.startswith(_RULES)


def sum_of(items: Any, start: Any = 0) -> Any:
    """`sum(items)` of an array or a growing list."""
    total = start
    for item in items:
        total = total + item
    return total


def max_of(items: Any) -> Any:
    """`max(items)`: the first of the largest."""
    if len(items) == 0:
        raise ValueError("max() iterable argument is empty")
    best = items[0]
    for k in range(1, len(items)):
        if items[k] > best:
            best = items[k]
    return best


def min_of(items: Any) -> Any:
    """`min(items)`: the first of the smallest."""
    if len(items) == 0:
        raise ValueError("min() iterable argument is empty")
    best = items[0]
    for k in range(1, len(items)):
        if items[k] < best:
            best = items[k]
    return best


def max_by(items: Any, key: Any) -> Any:
    """`max(items, key=key)`: the first of the largest."""
    if len(items) == 0:
        raise ValueError("max() iterable argument is empty")
    best = items[0]
    largest = key(items[0])
    for k in range(1, len(items)):
        value = key(items[k])
        if value > largest:
            best = items[k]
            largest = value
    return best


def min_by(items: Any, key: Any) -> Any:
    """`min(items, key=key)`: the first of the smallest."""
    if len(items) == 0:
        raise ValueError("min() iterable argument is empty")
    best = items[0]
    smallest = key(items[0])
    for k in range(1, len(items)):
        value = key(items[k])
        if value < smallest:
            best = items[k]
            smallest = value
    return best


def unless_empty(items: Any, default: Any, find: Any) -> Any:
    """`max(items, default=default)`, and `min`."""
    return find(items) if len(items) > 0 else default


def taken_first(items: Any) -> Any:
    """`items.pop(0)` of a growing list."""
    if len(items) == 0:
        raise IndexError("pop from empty list")
    first = items[0]
    for k in range(1, len(items)):
        items[k - 1] = items[k]
    items.pop()
    return first


def put_in_order(items: Any, key: Any, reverse: bool) -> None:
    """`items.sort(key=key, reverse=reverse)`: insertion, which keeps the order of equals as Python does."""
    keys = []
    for item in items:
        keys.append(item if key is None else key(item))
    for j in range(1, len(keys)):
        item = items[j]
        value = keys[j]
        k = j
        while k > 0 and (keys[k - 1] < value if reverse else value < keys[k - 1]):
            items[k] = items[k - 1]
            keys[k] = keys[k - 1]
            k -= 1
        items[k] = item
        keys[k] = value


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


def choices(size: int, count: int) -> int:
    """How many `itertools.combinations` there are."""
    number = 1
    for k in range(count):
        number = number * (size - k) // (k + 1)
    return number


def repeated_choices(size: int, count: int) -> int:
    """How many `itertools.combinations_with_replacement` there are."""
    return choices(size + count - 1, count)


def arrangements(size: int, count: int) -> int:
    """How many `itertools.permutations` there are."""
    number = 1
    for k in range(count):
        number = number * (size - k)
    return number


def chained(parts: Any) -> Any:
    """`list(itertools.chain(*parts))`."""
    made = []
    for part in parts:
        for item in part:
            made.append(item)
    return made


def accumulated(items: Any, func: Any) -> Any:
    """`list(itertools.accumulate(items, func))`."""
    made = []
    if len(items) > 0:
        total = items[0]
        made.append(total)
        for k in range(1, len(items)):
            total = func(total, items[k])
            made.append(total)
    return made


def accumulated_from(items: Any, func: Any, initial: Any) -> Any:
    """`list(itertools.accumulate(items, func, initial=initial))`."""
    total = initial
    made = [total]
    for item in items:
        total = func(total, item)
        made.append(total)
    return made


def joined(items: Any, more: Any) -> Any:
    """`items + more` of lists of which one grows."""
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
