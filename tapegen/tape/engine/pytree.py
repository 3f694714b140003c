"""Pytrees: nested lists, tuples and dicts of tensors, as targets and sources are passed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any


def leaves(structure: Any) -> Iterator[Any]:
    """The leaves of a structure; dicts in the order of their keys, as in TensorFlow."""
    if isinstance(structure, dict):
        structure = [structure[key] for key in _keys(structure)]
    elif not isinstance(structure, list | tuple):
        yield structure
        return
    for item in structure:
        yield from leaves(item)


def _keys(items: dict[Any, Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:  # keys of several types
        return list(items)


def mapped(structure: Any, function: Callable[[Any], Any]) -> Any:
    """The same structure with `function` applied to its leaves."""
    if isinstance(structure, dict):
        made = {key: mapped(structure[key], function) for key in _keys(structure)}
        return _like(structure, {key: made[key] for key in structure})
    if isinstance(structure, list | tuple):
        items = [mapped(item, function) for item in structure]
        if isinstance(structure, tuple) and hasattr(structure, "_fields"):
            return type(structure)(*items)
        return tuple(items) if isinstance(structure, tuple) else items
    return function(structure)


def _like(structure: dict[Any, Any], made: dict[Any, Any]) -> Any:
    """A dict of the same kind: an ordered one, one with defaults."""
    if isinstance(structure, defaultdict):
        return defaultdict(structure.default_factory, made)
    return made if type(structure) is dict else type(structure)(made)


def aligned(structure: Any, given: Any) -> list[Any]:
    """The leaves of one structure in the order of those of another; their dicts must have the same keys."""
    if isinstance(structure, dict) and isinstance(given, dict):
        if structure.keys() != given.keys():
            raise ValueError(f"The keys {list(given)} do not belong to {list(structure)}.")
        return [leaf for key in _keys(structure) for leaf in aligned(structure[key], given[key])]
    if isinstance(structure, list | tuple) and isinstance(given, list | tuple) and len(structure) == len(given):
        return [leaf for pair in zip(structure, given, strict=True) for leaf in aligned(*pair)]
    return list(leaves(given))


def refilled(structure: Any, items: list[Any]) -> Any:
    """The same structure with other leaves, taken in order."""
    remaining = iter(items)
    return mapped(structure, lambda _: next(remaining))
