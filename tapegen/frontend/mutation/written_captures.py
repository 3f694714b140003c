"""Written captures: captured objects, global and closure variables that a program writes, as containers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from types import CellType, FunctionType, ModuleType
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.frontend.mutation.caller_objects import Arguments, Path, Variable, own
from tapegen.frontend.source.parse import MISSING
from tapegen.frontend.values.captures import capture, expand, is_fixed, watch
from tapegen.frontend.values.context import Context, Restart
from tapegen.frontend.values.pytree import Struct, children_of
from tapegen.frontend.values.state import ABSENT, Box, Captured, Cell, Frame, Ref


def begin(cx: Context) -> None:
    """Create the cells of captures that earlier lowering attempts found to be written."""
    written = cx.recursion.written
    for key, captured in written.containers.items():
        struct = children_of(captured.value)
        assert struct is not None
        place = ("captured", key)
        is_tail = struct.kind == "list" and place not in written.read
        empty = Struct(struct.kind, (), (), struct.cls)
        cx.caller.containers[key] = own(cx, empty, _by(captured.getter), captured.name, place, is_tail=is_tail)
    for key, ref in cx.caller.containers.items():
        owned = cx.caller.owned[ref.cell]
        if not owned.is_tail:
            numbers = frozenset(name for owner, name in written.numbers if owner == key)
            content = expand(cx, written.containers[key], numbers)
            cx.state.cells[ref.cell] = Cell(content)
            cx.caller.owned[ref.cell] = dataclasses.replace(owned, initial=content)
    for variable in written.variables.values():
        _variable_cell(cx, variable)


def _by(getter: Callable[[], Any]) -> Callable[[Arguments], Any]:
    return lambda arguments: getter()


def _variable_cell(cx: Context, variable: Variable) -> Ref:
    try:
        value = variable.getter()
    except (NameError, KeyError, AttributeError):
        value = MISSING
    watch(cx, ("unbound", variable.path), partial(_is_unbound, variable.getter))
    held: Any = ABSENT
    if value is not MISSING:
        held = capture(cx, value, variable.getter, variable.name, variable.path, inside=True, changes=True)
    ref = own(
        cx,
        Struct("object", (variable.name,), (held,), Box),
        _by(variable.getter),
        variable.name,
        ("variable", variable.path),
        variable=variable,
    )
    cx.caller.variables[variable.path] = ref
    return ref


def _is_unbound(getter: Callable[[], Any]) -> bool:
    try:
        getter()
    except (NameError, KeyError, AttributeError):
        return True
    return False


def set_variable(cx: Context, variable: Variable, value: Any) -> None:
    """Write a variable outside of the function."""
    if variable.path not in cx.caller.variables:
        cx.recursion.written.variables[variable.path] = variable
        raise Restart
    cx.set_cell(cx.caller.variables[variable.path], Struct("object", (variable.name,), (value,), Box))


def outer_variable(frame: Frame, name: str) -> Variable:
    """The outer variable that a name declared `global` or `nonlocal` refers to."""
    cell, func = frame.parsed.cell(name), frame.parsed.func
    if cell is not None:
        return Variable(name, ("cell", id(cell)), frame.parsed.getter(name), partial(_set_cell, cell))
    names = func.__globals__
    return Variable(
        name, ("global", id(names), name), partial(names.__getitem__, name), partial(_set_item, names, name)
    )


def _set_cell(cell: CellType, value: Any) -> None:
    cell.cell_contents = value


def _set_item(names: dict[str, Any], name: str, value: Any) -> None:
    names[name] = value


def set_static_attribute(cx: Context, owner: Any, name: str, value: Any) -> bool:
    """`owner.name = value` of a function, class or module; False where that is not supported."""
    if not isinstance(owner, FunctionType | type | ModuleType) or is_fixed(owner):
        return False
    if isinstance(owner, type) and not (name in vars(owner) and type(owner) is type):
        return False
    path: Path = (id(owner), name)
    if isinstance(owner, ModuleType):
        names = vars(owner)
        path = ("global", id(names), name)
    set_variable(cx, Variable(name, path, partial(getattr, owner, name), partial(setattr, owner, name)), value)
    return True


def write_captured(cx: Context, owner: Captured) -> None:
    """A captured object is written: restart lowering with it as a container."""
    key = id(owner.value)
    if key in cx.recursion.written.containers or cx.rules:
        raise cx.refusal(
            NotDifferentiable,
            f"this writes into '{owner.name}', which is not part of the result.",
            "Return the new value, and assign it outside.",
        )
    cx.recursion.written.containers[key] = owner
    raise Restart
