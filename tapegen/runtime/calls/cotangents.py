"""Cotangents and tangents that a call starts with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegen.errors import BadArgument
from tapegen.frontend.values.pytree import Abstract, Slot, StaticValue, children_of
from tapegen.ir.nodes import Var
from tapegen.ir.types import Array
from tapegen.runtime.fast_call import as_type


def cotangents_of(objective: Abstract, value: Any, value_bar: Any, wanted: tuple[Var, ...]) -> list[Any]:
    """Cotangents of the active results, checked against the value."""
    seeds: list[Any] = []
    for position, (leaf, bar) in enumerate(_matched(objective, value, value_bar)):
        if not _floats(leaf):
            continue
        if np.shape(bar) != np.shape(leaf):
            raise BadArgument(
                f"the cotangent of result {position} has shape {np.shape(bar)}, the result {np.shape(leaf)}.",
                "Give cotangents in the structure of the value.",
            )
        if np.iscomplexobj(bar) and not np.iscomplexobj(leaf):
            raise BadArgument(
                f"the cotangent of result {position} is complex, the result is real.",
                "Give real cotangents of real results.",
            )
        if isinstance(leaf, np.ndarray):
            seeds.append(np.array(bar, leaf.dtype))
        else:
            seeds.append(leaf.dtype.type(bar) if isinstance(leaf, np.generic) else type(leaf)(bar))
    if len(seeds) != len(wanted):
        raise BadArgument("the cotangents do not match the value.", "Give one for each result.")
    return seeds


def _floats(leaf: Any) -> bool:
    return np.asarray(leaf).dtype.kind in "fc"


def _matched(template: Any, value: Any, value_bar: Any) -> Iterator[tuple[Any, Any]]:
    """The computed leaves of a value with their cotangents; constants that the program returns have none."""
    if isinstance(template, StaticValue):
        return
    if isinstance(template, Slot):
        yield value, value_bar
        return
    values, bars = children_of(value), children_of(value_bar)
    if values is None or bars is None or values.keys != bars.keys:
        raise BadArgument("the cotangents do not match the value.", "Give them in the structure of the value.")
    for child, part, bar in zip(template.children, values.children, bars.children, strict=True):
        yield from _matched(child, part, bar)


def zero_tangent(leaf: Any) -> Any:
    """A tangent of the type that a call passes for an argument."""
    return np.zeros_like(leaf, order="C", subok=False) if isinstance(leaf, np.ndarray) else type(leaf)(0)


def unit_cotangent(seed: Var) -> Any:
    """The cotangent of a number whose gradient is wanted."""
    if isinstance(seed.type, Array):
        return np.ones((), seed.type.dtype)
    return as_type(1.0, seed.type)
