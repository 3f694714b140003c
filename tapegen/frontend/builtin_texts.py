"""What some builtins do, as Python that is written out in their place."""

from __future__ import annotations

from typing import Any


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
