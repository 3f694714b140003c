"""Captured values: globals, closure variables, and results of calls at entry."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from tapegen.errors import BadArgument, NotDifferentiable
from tapegen.frontend.source.parse import MISSING
from tapegen.frontend.values.assumptions import WHOLE, ContainerRead, Guard
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.library_objects import is_function_of_library
from tapegen.frontend.values.pytree import (
    Leaf,
    StaticValue,
    Struct,
    children_of,
    leaf_type,
    refuse_foreign,
    snapshot,
    tuple_of,
)
from tapegen.frontend.values.state import ABSENT, Captured, Maybe, Poison
from tapegen.ir.names import identifier
from tapegen.ir.protocols import is_opaque, recorder_of
from tapegen.ir.types import STATIC, Array, RandomGenerator, Scalar, is_floating

# ---- values of globals and closures --------------------------------------------------------------------------------

_CAN_CHANGE = 1 << 9  # flag of a class: made by a class statement

_IMMUTABLE = (str, bytes, int, float, slice, range, np.dtype, np.generic, np.ufunc)

_FIXED_MODULES = frozenset(
    {"numpy", "math", "scipy", "operator", "builtins", "cmath", "numba", "functools", "itertools"}
)


def capture(
    cx: Context,
    value: Any,
    getter: Callable[[], Any],
    name: str,
    path: Any,
    *,
    inside: bool = False,
    variable: Any = None,
    changes: bool = False,
) -> Any:
    """The value of a global, a closure variable or a part of one.

    Parameters
    ----------
    cx : Context
        Gets the new argument or the guard.
    value : object
        The current value.
    getter : callable
        Reads it again before each call.
    name : str
        Its name in the text.
    path : hashable
        Its location, the same for each read.
    inside : bool
        Whether it is an item of an object: then floats are arguments of the program; others are guarded constants.
    variable : hashable, optional
        The variable in the text, the same for all closures of one code: a changed float becomes an argument.
    changes : bool
        Whether the program writes to it: then an integer is an argument as well.
    """
    if path in cx.caller.variables and not changes:
        return _mutated_variable(cx, cx.caller.variables[path])
    if recorder_of((value,), {}) is not None:
        raise cx.refusal(
            NotDifferentiable,
            f"'{name}' is a tensor from outside of the function, and only arguments are recorded.",
            "Pass it as an argument; if no gradient shall reach it, pass its .numpy().",
        )
    try:
        refuse_foreign(value, name)
        type_, is_container = leaf_type(value, name), children_of(value) is not None
    except BadArgument as error:
        raise cx.refusal(type(error), error.reason, error.advice) from None
    is_float = isinstance(type_, Scalar) and is_floating(type_)
    is_argument = isinstance(type_, (Array, RandomGenerator)) or (
        is_float and (inside or variable in cx.assumptions.changing)
    )
    is_argument |= changes and isinstance(type_, Scalar)
    if type_ is not None and is_argument:
        if path not in cx.assumptions.captured:
            cx.assumptions.captured[path] = (cx.new_var(identifier(name), type_), getter)
            if path in cx.assumptions.shaped:
                cx.symbols.shapes[cx.assumptions.captured[path][0]] = (
                    captured_shape(cx, cx.assumptions.captured[path][0]) or ()
                )
        return Leaf(cx.assumptions.captured[path][0])
    if is_container and not is_function_of_library(value):
        watch(cx, (path, "class"), lambda: type(getter()), name)
        _watch_mutated(cx, getter, path)
        return cx.caller.containers.get(id(value)) or Captured(value, getter, name, path)
    watch(cx, path, getter, name)
    if is_float and variable is not None:
        cx.assumptions.floats[variable] = value
    return StaticValue(value)


def _mutated_variable(cx: Context, ref: Any) -> Any:
    """The current value, on this path, of an outer variable that the program writes."""
    content = cx.state.cells[ref.cell].content
    assert isinstance(content, Struct)
    (name,), (value,) = content.keys, content.children
    if value is ABSENT:
        cx.raise_(NameError, f"name '{name}' is not defined")
    if isinstance(value, (Maybe, Poison)):
        reason, advice = f"'{name}' is bound on some paths only.", "Bind it on all paths, or before the first call."
        if isinstance(value, Poison):
            reason, advice = value.reason, value.advice
        raise cx.refusal(NotDifferentiable, reason, advice)
    return value


def _watch_mutated(cx: Context, getter: Callable[[], Any], path: Any) -> None:
    """Guard the identity of written objects of the caller: the program depends on which of them are the same."""
    for captured in cx.recursion.written.containers.values():
        if path != captured.path:
            watch(cx, (path, "is", captured.path), functools.partial(_is_same, getter, captured.getter))


def _is_same(first: Callable[[], Any], second: Callable[[], Any]) -> bool:
    return first() is second()


def bound_value(cx: Context, value: Any, name: str, path: Any) -> Any:
    """An argument that was bound before the program runs."""
    return capture(cx, value, lambda: value, name, ("bound", path))


def watch(cx: Context, path: Any, getter: Callable[[], Any], name: str = "") -> None:
    """Add a guard: the program is valid as long as the current value stays; `name` is for messages."""
    if path not in cx.assumptions.guards:
        cx.assumptions.guards[path] = Guard(getter, snapshot(getter()), name, path[0] in ("global", "cell"))


def note_read(cx: Context, captured: Captured, key: Any) -> None:
    """Record a read of a captured container: a call must not write there through an argument that is the same."""
    cx.assumptions.reads[captured.path, type(key), key] = ContainerRead(captured.getter, captured.name, key)


def note_library(cx: Context, module: ModuleType, name: str) -> None:
    """Guard an attribute of a library module: the program is valid until it is replaced (`np.sin = other`)."""
    reader = cx.frame.parsed.func.__module__ or ""
    if name in vars(module) and not reader.startswith("tapegen."):
        cx.assumptions.library.setdefault(id(module), (module, {}))[1][name] = vars(module)[name]


def library_guards(cx: Context) -> Iterator[Guard]:
    """For each library module, a getter of all its guarded attributes at once, and their values."""
    for module, found in cx.assumptions.library.values():
        values = tuple(found.values())
        getter = functools.partial(operator.itemgetter(*found), vars(module))
        yield Guard(getter, values if len(found) > 1 else values[0], module.__name__)


def class_member(cx: Context, cls: type, name: str, after: type | None = None) -> Any:
    """The raw attribute of a class (no descriptor call); MISSING if there is none.

    With `after`, as `super()` finds it: in the classes after that one in the method resolution order.
    """
    if cls.__flags__ & _CAN_CHANGE:
        watch(cx, ("member", id(cls), name, after), lambda: _member(cls, name, after))
    return _member(cls, name, after)


def special_method(cx: Context, cls: type, name: str) -> Any:
    """A method that Python's own syntax calls; None if the class has none."""
    return None if class_member(cx, cls, name) is MISSING else getattr(cls, name)


def _member(cls: type, name: str, after: type | None = None) -> Any:
    bases = cls.__mro__[0 if after is None else cls.__mro__.index(after) + 1 :]
    return next((vars(base)[name] for base in bases if name in vars(base)), MISSING)


def is_method(found: Any) -> bool:
    """Whether attribute access binds a class member: functions, plain, compiled, cached, differentiable."""
    kinds = (FunctionType, functools._lru_cache_wrapper)
    return isinstance(found, kinds) or hasattr(found, "py_func") or is_opaque(found)


def has_attribute(cx: Context, owner: Any, name: str, getter: Callable[[], Any], path: Any) -> bool:
    """Whether an object currently has an attribute."""
    watch(cx, (path, "has", name), lambda: hasattr(getter(), name))
    return hasattr(owner, name)


def captured_shape(cx: Context, array: Any) -> tuple[int, ...] | None:
    """The shape of a captured array, which is guarded."""
    for path, (var, getter) in cx.assumptions.captured.items():
        if var is array:
            watch(cx, (path, "shape"), functools.partial(_shape, getter), f"{var.name.partition('#')[0]}.shape")
            return np.shape(getter())
    return None


def _shape(getter: Callable[[], Any]) -> tuple[int, ...]:
    return np.shape(getter())


def lacks_item(cx: Context, captured: Captured, key: Any) -> None:
    """Guard that a container lacks a key."""
    note_read(cx, captured, key)

    def found() -> bool:
        try:
            captured.getter()[key]
        except (LookupError, TypeError):
            return False
        return True

    watch(cx, (captured.path, "lacks", type(key), key), found)


def computed(cx: Context, value: Any, getter: Callable[[], Any], name: str, path: Any) -> Any:
    """The result of a call at entry: arrays and floats are arguments of the program."""
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


def captured_child(
    cx: Context, parent: Captured, key: Any, value: Any, read: Callable[[Any], Any], *, changes: bool = False
) -> Any:
    """An item of a captured container."""

    def getter() -> Any:
        return read(parent.getter())

    note_read(cx, parent, key)
    name, path = f"{parent.name}_{key}", (parent.path, type(key), key)
    cx.caller.places[path] = ("captured", id(parent.value), key)
    return capture(cx, value, getter, name, path, inside=True, changes=changes)


def expand(cx: Context, captured: Captured, changing: frozenset[Any] = frozenset()) -> Struct:
    """A captured container with all its items; integers under the keys `changing` are arguments."""
    struct = children_of(captured.value)
    assert struct is not None
    if struct.kind == "object":
        read: Callable[[Any], Callable[[Any], Any]] = lambda key: operator.attrgetter(key)  # noqa: E731
    elif hasattr(struct.cls, "_fields"):
        read = lambda key: operator.attrgetter(key)  # noqa: E731
    else:
        read = lambda key: operator.itemgetter(key)  # noqa: E731
    keys = struct.keys
    note_read(cx, captured, WHOLE)
    watch(cx, (captured.path, "keys"), lambda: _keys(captured.getter()), captured.name)
    children = (
        captured_child(cx, captured, key, child, read(key), changes=key in changing)
        for key, child in zip(keys, struct.children, strict=True)
    )
    return dataclasses.replace(struct, children=tuple(children))


def _keys(value: Any) -> tuple[Any, ...] | None:
    struct = children_of(value)
    return None if struct is None else struct.keys


def is_fixed(value: Any) -> bool:
    """Whether the attributes of an object never change: modules and classes of libraries, and immutable objects."""
    if isinstance(value, ModuleType):
        return _is_library(value.__name__)
    if isinstance(value, type):
        return _is_library(value.__module__)
    return isinstance(value, _IMMUTABLE) or (
        not isinstance(value, FunctionType) and _is_library(type(value).__module__)
    )


def _is_library(module: str) -> bool:
    return module.partition(".")[0] in _FIXED_MODULES
