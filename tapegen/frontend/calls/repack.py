"""Result repacking: flat results of an outlined program as the structures they belong to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapegen.errors import BadArgument
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import describe
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, Slot, StaticValue, Struct
from tapegen.frontend.values.state import known_value
from tapegen.frontend.values.type_join import converted
from tapegen.ir import builders
from tapegen.ir.nodes import Expr, Tuple
from tapegen.ir.types import Array, Scalar, is_complex, is_floating


def restored(
    cx: Context, template: Any, value_of: Callable[[int], Any], constant: Callable[[Any], Any] = lambda value: value
) -> Any:
    """The result of the program, or what belongs to it, as a structure.

    Parameters
    ----------
    cx : Context
        The program around it.
    template : Abstract
        The structure.
    value_of : callable
        Gives what takes the place of a result, by its position; None where there is nothing.
    constant : callable
        Gives what takes the place of a value that is known when compiling.
    """
    if isinstance(template, Slot):
        found = value_of(template.index)
        return StaticValue(None) if found is None else found
    if isinstance(template, Struct):
        return container(cx, template, [restored(cx, child, value_of, constant) for child in template.children])
    return StaticValue(constant(template.value)) if isinstance(template, StaticValue) else template


def container(cx: Context, template: Struct, children: list[Any]) -> Any:
    made = dataclasses.replace(template, children=tuple(children), whole=None)
    return made if made.kind == "tuple" else cx.new_cell(made)


def matched(cx: Context, template: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """Leaves of an argument or result, paired with those of another structure."""
    if isinstance(template, Leaf):
        if is_floating(template.type):
            yield template.expr, value
    elif isinstance(template, Slot):
        yield template.index, value
    elif isinstance(template, Struct):
        if not isinstance(value, Struct) or value.keys != template.keys:
            raise cx.refusal(
                BadArgument,
                "tangents or cotangents do not have the structure of the value.",
                "Give the same structure.",
            )
        for child, part in zip(template.children, value.children, strict=True):
            yield from matched(cx, child, part)


def tangent_of(cx: Context, like: Expr, value: Any) -> Any:
    """A tangent or cotangent for a value of the type of `like`, in a new array."""
    type_ = like.type
    if isinstance(type_, Scalar):
        known = known_value(value)
        if known is not UNKNOWN and isinstance(known, (int, float)):
            return StaticValue(complex(known) if is_complex(type_) else float(known))
        if known is not UNKNOWN and isinstance(known, complex) and is_complex(type_):
            return StaticValue(known)
        if isinstance(value, Leaf) and isinstance(value.type, Scalar) and is_complex(value.type) <= is_complex(type_):
            if is_complex(value.type) == is_complex(type_):
                return value
            return Leaf(cx.assign("tangent", converted(value.expr, type_)))
    found = value.type if isinstance(value, Leaf) else None
    if is_complex(found) and not is_complex(type_):
        found = None
    if isinstance(found, Scalar) and isinstance(type_, Array) and type_.rank == 0 and found.dtype == type_.dtype:
        return Leaf(cx.assign("tangent", builders.call(np.full, Tuple(()), value.expr, type_=type_)))
    if isinstance(found, Array) and isinstance(type_, Array) and found.rank == type_.rank and is_floating(found):
        given = cx.symbols.resolve(value.expr)
        return Leaf(
            cx.assign(
                "tangent", builders.copy(given) if found.dtype == type_.dtype else builders.cast(given, type_.dtype)
            )
        )
    raise cx.refusal(
        BadArgument,
        f"{describe(cx, value)} does not fit the value whose tangent or cotangent it is.",
        "Give it the dtype and the number of axes of the value.",
    )
