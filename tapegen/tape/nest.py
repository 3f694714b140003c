"""Nested lists, tuples and dicts of tensors, as targets and sources come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def leaves(structure: Any) -> Iterator[Any]:
    """What stands in a structure, dicts in the order of their keys' insertion."""
    if isinstance(structure, dict):
        structure = structure.values()
    elif not isinstance(structure, list | tuple):
        yield structure
        return
    for item in structure:
        yield from leaves(item)


def mapped(structure: Any, function: Callable[[Any], Any]) -> Any:
    """The same structure of other things."""
    if isinstance(structure, dict):
        return {key: mapped(item, function) for key, item in structure.items()}
    if isinstance(structure, list | tuple):
        items = [mapped(item, function) for item in structure]
        if isinstance(structure, tuple) and hasattr(structure, "_fields"):
            return type(structure)(*items)
        return tuple(items) if isinstance(structure, tuple) else items
    return function(structure)


def refilled(structure: Any, items: list[Any]) -> Any:
    """The same structure with other leaves, taken in order."""
    remaining = iter(items)
    return mapped(structure, lambda _: next(remaining))
