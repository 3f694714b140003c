"""Values of globals and closure variables."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from tapegen.frontend.lower_context import Captured, Context
from tapegen.frontend.structure import Leaf, StaticValue, Struct, children_of, leaf_type, tuple_of
from tapegen.ir.types import STATIC, Array, is_floating

# ---- values of globals and closures --------------------------------------------------------------------------------

_FIXED_MODULES = frozenset(
    {"numpy", "math", "scipy", "operator", "builtins", "cmath", "numba", "functools", "itertools"}
)


def capture(cx: Context, value: Any, getter: Callable[[], Any], name: str, path: Any, *, inside: bool = False) -> Any:
    """The value of a global, a closure variable or a part of one.

    Parameters
    ----------
    cx : Context
        Takes the new argument or the guard.
    value : object
        What it is now.
    getter : callable
        Reads it again before each call.
    name : str
        Its name in the text.
    path : hashable
        Where it is, the same for each read of it.
    inside : bool
        Whether it is a part of an object: its floats then are arguments of the program; others are guarded constants.
    """
    type_ = leaf_type(value, name)
    if isinstance(type_, Array) or (inside and type_ is not None and is_floating(type_)):
        if path not in cx.hidden:
            cx.hidden[path] = (cx.new_var(name, type_), getter)
        return Leaf(cx.hidden[path][0])
    if children_of(value) is not None:
        cx.guards.setdefault((path, "class"), (lambda: type(getter()), type(value)))
        return Captured(value, getter, name)
    if not isinstance(value, ModuleType):
        cx.guards.setdefault(path, (getter, value))
    return StaticValue(value)


def computed(cx: Context, value: Any, getter: Callable[[], Any], name: str, path: Any) -> Any:
    """The result of a call that is made before the program runs: arrays and floats are arguments of the program."""
    if isinstance(value, tuple):
        parts = (
            computed(cx, part, functools.partial(_part, getter, k), f"{name}_{k}", (path, k))
            for k, part in enumerate(value)
        )
        return tuple_of(parts)
    if isinstance(value, np.generic) and not is_floating(leaf_type(value, name) or STATIC):
        return StaticValue(value)
    return capture(cx, value, getter, name, path, inside=True)


def _part(getter: Callable[[], Any], k: int) -> Any:
    return getter()[k]


def captured_child(cx: Context, parent: Captured, key: Any, value: Any, read: Callable[[Any], Any]) -> Any:
    """A part of a captured container."""

    def getter() -> Any:
        return read(parent.getter())

    return capture(cx, value, getter, f"{parent.name}_{key}", (id(parent.value), type(key), key), inside=True)


def expand(cx: Context, captured: Captured) -> Struct:
    """A captured container with all its parts."""
    struct = children_of(captured.value)
    assert struct is not None
    if struct.kind == "object":
        read: Callable[[Any], Callable[[Any], Any]] = lambda key: operator.attrgetter(key)  # noqa: E731
    elif hasattr(struct.cls, "_fields"):
        read = lambda key: operator.attrgetter(key)  # noqa: E731
    else:
        read = lambda key: operator.itemgetter(key)  # noqa: E731
    keys = struct.keys
    cx.guards.setdefault((id(captured.value), "keys"), (lambda: _keys(captured.getter()), keys))
    children = (
        captured_child(cx, captured, key, child, read(key)) for key, child in zip(keys, struct.children, strict=True)
    )
    return dataclasses.replace(struct, children=tuple(children))


def _keys(value: Any) -> tuple[Any, ...] | None:
    struct = children_of(value)
    return None if struct is None else struct.keys


def is_fixed_module(module: ModuleType) -> bool:
    """Whether the contents of a module never change."""
    return module.__name__.partition(".")[0] in _FIXED_MODULES
