"""Packing and unpacking of tangents: matched with arguments and results leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegen.errors import BadArgument
from tapegen.frontend.values.pytree import (
    Abstract,
    Leaf,
    Slot,
    StaticValue,
    Struct,
    children_of,
    is_foreign,
    rebuild,
    tangent_of_constant,
)
from tapegen.ir.types import Array, ListOf, is_floating, python_class
from tapegen.runtime.foreign_arrays import as_numpy


def argument_at(arguments: dict[str, Any], path: str) -> Any:
    """The value that an item of `wrt` names: an argument, or a part of it (`"args.0"`)."""
    head, *parts = path.split(".")
    found = arguments[head]
    for part in parts:
        content = children_of(found)
        assert content is not None  # its template has this item
        found = content.get(int(part) if part.isdecimal() else part)
    return found


def argument_tangents(
    name: str, template: Abstract, value: Any, tangent: Any, *, copied: bool = True
) -> Iterator[tuple[Leaf, Any]]:
    """The floating leaves of an argument with their tangents, in the dtype and layout of the leaf.

    Parameters
    ----------
    name : str
        The argument, for errors.
    template : Abstract
        Its abstract value.
    value, tangent : object
        The argument, and a tangent of the same structure; tangents of leaves that are not floating are ignored.
    copied : bool
        Whether each tangent is a copy, also where it has the dtype and layout of the leaf already.

    Raises
    ------
    BadArgument
        The structures or the shapes differ.
    """
    if isinstance(template, StaticValue):
        return
    if isinstance(template, Leaf):
        if is_floating(template.type):
            yield template, _as_leaf(name, value, tangent, copied=copied)
        return
    values, tangents = children_of(value), children_of(tangent)
    if values is None or tangents is None or values.keys != tangents.keys:
        raise BadArgument(
            f"the tangent of '{name}' does not have the structure of the argument.",
            "Give a tangent for every number and array in it, in the same structure.",
        )
    for key, child, part, dot in zip(values.keys, template.children, values.children, tangents.children, strict=True):
        yield from argument_tangents(f"{name}.{key}", child, part, dot, copied=copied)


def _as_leaf(name: str, value: Any, tangent: Any, *, copied: bool) -> Any:
    given = as_numpy(tangent, f"the tangent of {name}") if is_foreign(tangent) else np.asarray(tangent)
    kinds = "cfiub" if np.iscomplexobj(value) else "fiub"
    if given.dtype.kind not in kinds or given.shape != np.shape(value):
        found = f"has shape {given.shape}" if given.dtype.kind in kinds else f"is {tangent!r}"
        raise BadArgument(
            f"the tangent of '{name}' {found}, the argument has shape {np.shape(value)}.",
            "Give a tangent of the shape of the argument.",
        )
    if isinstance(value, np.ndarray):
        made = np.empty_like(value)
        if not copied and _is_alike(given, made):
            return given
        made[...] = given
        return made
    return np.asarray(value).dtype.type(given[()])


def _is_alike(given: np.ndarray, made: np.ndarray) -> bool:
    """Whether compiled code accepts an array in place of another one."""
    same = type(given) is np.ndarray and given.dtype == made.dtype and given.strides == made.strides
    return same and given.flags.aligned and given.flags.writeable


def result_tangent(template: Any, found: dict[int, Any]) -> Any:
    """The tangents of the results in the structure of the value; None where there is no derivative.

    Parameters
    ----------
    template : Abstract
        The structure of the value.
    found : dict
        Position of a result to its tangent.
    """
    if isinstance(template, Slot):
        return found.get(template.index)
    if isinstance(template, Struct):
        return rebuild(template, [result_tangent(child, found) for child in template.children])
    return tangent_of_constant(template.value)


def as_result(tangent: Any, type_: Any, earlier: list[Any]) -> Any:
    """A tangent as the caller receives it: of the dtype of its result, and sharing no memory with an earlier one."""
    if isinstance(type_, ListOf):
        made: list[Any] = []
        for item in tangent:
            made.append(as_result(item, type_.item, [*earlier, *made]))
        return made
    if not isinstance(type_, Array):
        return python_class(type_)(tangent) if type_.python else np.dtype(type_.dtype).type(tangent)
    tangent = np.asarray(tangent, type_.dtype)
    for other in _arrays(earlier):
        if np.may_share_memory(other, tangent):
            return tangent.copy()
    return tangent


def _arrays(values: list[Any]) -> Iterator[np.ndarray]:
    for value in values:
        if isinstance(value, list):
            yield from _arrays(value)
        elif isinstance(value, np.ndarray):
            yield value
