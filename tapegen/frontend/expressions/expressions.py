"""Lowering of expressions to abstract values.

`evaluate` returns the abstract value of a node and emits the statements that must run first.  Inside a condition
(`try_expression`) it may emit none: the condition stays one expression, with Python's short-circuit evaluation.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from enum import EnumType
from types import GeneratorType
from typing import Any

import gast

from tapegen.errors import BadArgument, NotDifferentiable, UnsupportedSyntax
from tapegen.frontend.mutation.written_captures import outer_variable, set_variable
from tapegen.frontend.source.parse import MISSING
from tapegen.frontend.values.captures import capture, watch
from tapegen.frontend.values.complex_parts import is_part, unread
from tapegen.frontend.values.context import Context, NeedsStatements
from tapegen.frontend.values.materialize import describe, named, not_, poison_check, static, struct_of
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct, dict_of, list_of, tuple_of
from tapegen.frontend.values.state import ABSENT, Box, Closure, Frame, Maybe, Series
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Assign, Const, Expr, Var
from tapegen.ir.types import Array

Evaluator = Callable[[Context, Any, str | None], Any]
_EVALUATORS: dict[type, Evaluator] = {}


def evaluates(*kinds: type) -> Callable[[Evaluator], Evaluator]:
    """Register the function that evaluates a kind of node."""

    def register(evaluator: Evaluator) -> Evaluator:
        _EVALUATORS.update(dict.fromkeys(kinds, evaluator))
        return evaluator

    return register


class Given(gast.expr):
    """A node that is already evaluated."""

    _fields = ()

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def evaluate(cx: Context, node: gast.AST, hint: str | None = None) -> Any:
    """The abstract value of an expression.

    Parameters
    ----------
    cx : Context
        The context in which statements are emitted.
    node : gast.AST
        The expression.
    hint : str, optional
        The name of the result, if it gets a variable.
    """
    evaluator = _EVALUATORS.get(type(node))
    with cx.at(node):
        if evaluator is None:
            kind = type(node).__name__
            raise cx.refusal(
                UnsupportedSyntax, f"the expression '{kind}' is not supported.", "Write it with calls and operators."
            )
        return evaluator(cx, node, hint)


def evaluate_all(cx: Context, nodes: Sequence[gast.AST]) -> list[Any]:
    """Values of several expressions, in order of evaluation."""
    values: list[Any] = []
    for node in nodes:
        seen, place = cx.effects, len(cx.builder.items)
        value = evaluate(cx, node)
        if cx.effects != seen:
            pin(cx, values, place)
        values.append(value)
    return values


def pin(cx: Context, values: list[Any], place: int) -> None:
    """Bind pending expressions to variables before statements that may change their values."""

    def pinned(value: Any) -> Any:
        if isinstance(value, Struct) and value.kind == "tuple":
            children = tuple(map(pinned, value.children))
            same = all(map(operator.is_, children, value.children))
            return value if same else dataclasses.replace(value, children=children)
        if not isinstance(value, Leaf) or isinstance(value.expr, (Var, Const)) or is_part(value):
            return value
        var = cx.new_var(TEMPORARY, value.type)
        cx.builder.items.insert(place, Assign((var,), value.expr, cx.origin))
        cx.symbols.definitions[var] = value.expr
        return Leaf(var, value.known)

    values[:] = map(pinned, values)


# ---- names and constants -------------------------------------------------------------------------------------------


@evaluates(gast.Constant)
def _constant(cx: Context, node: gast.Constant, hint: str | None) -> Any:
    value = node.value
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise cx.refusal(BadArgument, f"the integer {value:.3e} does not fit into 64 bits.", "Write it as a float.")
    return StaticValue(value)


@evaluates(gast.Name)
def _name(cx: Context, node: gast.Name, hint: str | None) -> Any:
    return look_up_name(cx, node.id)


@evaluates(Given)
def _given(cx: Context, node: Given, hint: str | None) -> Any:
    return node.value


def look_up_name(cx: Context, name: str) -> Any:
    """The value of a name at this point of the program."""
    frame: Frame | None = cx.frame
    while frame is not None:
        if name in frame.locals:
            return _local(cx, frame, name)
        if frame.parent is None:
            break
        frame = frame.parent
    assert frame is not None
    cell, func = frame.parsed.cell(name), frame.parsed.func
    path = ("cell", id(cell)) if cell is not None else ("global", id(func.__globals__), name)
    value = frame.parsed.resolve(name)
    if value is MISSING and path not in cx.caller.variables:
        watch(cx, ("missing", id(frame.parsed.func), name), lambda: frame.parsed.resolve(name) is MISSING)
        cx.raise_(NameError, f"name '{name}' is not defined")
    variable = path if cell is None else ("cell", func.__code__, name)
    return capture(cx, value, frame.parsed.getter(name), name, path, variable=variable)


def _local(cx: Context, frame: Frame, name: str) -> Any:
    key = (frame, name)
    missing = object()
    value = cx.state.vars.get(key, missing)
    if value is missing:
        for head in cx.heads:
            if head.values.get(key) is ABSENT:
                head.observed.add(key)
        _raise_unbound(cx, frame, name, None)
    cx.observe(key, value)
    box = value if name in frame.boxed else None
    if box is not None:
        content = struct_of(cx, box)
        assert content is not None
        value = content.get(name)
        if value is ABSENT:
            _raise_unbound(cx, frame, name, None)
    if isinstance(value, Maybe):
        _raise_unbound(cx, frame, name, value.bound)
        value = value.value
        if box is not None:
            cx.set_cell(box, Struct("object", (name,), (value,), Box))
        else:
            cx.state.vars[key] = value
    return unread(cx, poison_check(cx, value))


def _raise_unbound(cx: Context, frame: Frame, name: str, bound: Expr | None) -> None:
    if frame is cx.frame:
        message = f"cannot access local variable '{name}' where it is not associated with a value"
        error: type[Exception] = UnboundLocalError
    else:
        message = f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
        error = NameError
    if bound is None:
        cx.raise_(error, message)
    test = not_(bound)
    assert not isinstance(test, bool)
    cx.raise_if(test, error, message)


@evaluates(gast.NamedExpr)
def _walrus(cx: Context, node: gast.NamedExpr, hint: str | None) -> Any:
    if cx.whole:
        raise NeedsStatements
    return bind_name(cx, node.target.id, evaluate(cx, node.value, hint=node.target.id))


def owner_of(cx: Context, name: str) -> Frame:
    """The frame that an assigned name belongs to: the function around a comprehension, or that of a `nonlocal`."""
    frame = cx.frame
    while name not in frame.locals and frame.parent is not None:
        frame = frame.parent
    return frame


def bind_name(cx: Context, name: str, value: Any) -> Any:
    """`name = value`; returns the value as the variable holds it."""
    value = named(cx, owner_of(cx, name), name, value)
    put_name(cx, name, value)
    return value


def put_name(cx: Context, name: str, value: Any) -> None:
    """`name = value` of a value that needs no conversion to a variable's value."""
    frame = owner_of(cx, name)
    if name in frame.boxed:
        cx.set_cell(cx.state.vars[(frame, name)], Struct("object", (name,), (value,), Box))
    elif name in frame.locals:
        cx.state.vars[(frame, name)] = value
    else:
        set_variable(cx, outer_variable(frame, name), value)


def enter(cx: Context, frame: Frame) -> None:
    """Enter a function: create containers for the variables that inner functions assign."""
    for name in sorted(frame.boxed):
        cx.state.vars[(frame, name)] = cx.new_cell(Struct("object", (name,), (ABSENT,), Box))


# ---- displays ------------------------------------------------------------------------------------------------------


@evaluates(gast.Tuple)
def _tuple(cx: Context, node: gast.Tuple, hint: str | None) -> Any:
    return tuple_of(elements(cx, node.elts, _of_items(cx, hint)))


def _of_items(cx: Context, hint: str | None) -> str | None:
    """Name hint for the items of a display: items of an inlined call are no results of the program."""
    return hint if len(cx.calls) <= 1 else None


@evaluates(gast.List)
def _list(cx: Context, node: gast.List, hint: str | None) -> Any:
    return cx.new_cell(list_of(elements(cx, node.elts, _of_items(cx, hint))))


def elements(cx: Context, nodes: Sequence[gast.AST], hint: str | None = None) -> list[Any]:
    """Values of the items of a display or of positional arguments, starred ones unpacked."""
    values: list[Any] = []
    for node in nodes:
        starred = isinstance(node, gast.Starred)
        seen, place = cx.effects, len(cx.builder.items)
        value = evaluate(cx, node.value if starred else node, None if starred else hint)
        if cx.effects != seen:
            pin(cx, values, place)
        if starred:
            values.extend(spread(cx, value))
        else:
            values.append(value)
    return values


def spread(cx: Context, value: Any) -> tuple[Any, ...]:
    """The items of a sequence of known length."""
    content = struct_of(cx, value)
    if content is not None and content.kind != "object":
        return content.children if content.kind != "dict" else tuple(map(StaticValue, content.keys))
    if isinstance(value, StaticValue) and isinstance(value.value, (tuple, list, str, range, dict, EnumType)):
        return tuple(map(StaticValue, value.value))
    generator = content is not None and content.cls is GeneratorType
    if (
        generator
        or isinstance(value, Series)
        or (isinstance(value, Leaf) and isinstance(value.type, Array) and value.type.rank)
    ):
        return tuple(cx.call(cx, StaticValue(tuple), (value,), {}).children)
    raise cx.refusal(
        NotDifferentiable,
        f"the length of {describe(cx, value)} is not known here.",
        "Index it, or unpack a tuple; pass a list itself, without '*'.",
    )


@evaluates(gast.Dict)
def _dict(cx: Context, node: gast.Dict, hint: str | None) -> Any:
    items: list[tuple[Any, Any]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            content = struct_of(cx, evaluate(cx, value))
            if content is None or content.kind != "dict":
                raise cx.refusal(NotDifferentiable, "'**' needs a dict with known keys.", "Write the items out.")
            items.extend(zip(content.keys, content.children, strict=True))
        else:
            name = static(cx, evaluate(cx, key), "a key of a dict")
            items.append((name, cx.counted(evaluate(cx, value))))  # before what the next items change
    return cx.new_cell(dict_of(items))


@evaluates(gast.Lambda)
def _lambda(cx: Context, node: gast.Lambda, hint: str | None) -> Any:
    return make_closure(cx, node)


def make_closure(cx: Context, node: gast.FunctionDef | gast.Lambda) -> StaticValue:
    """An inner function; its defaults are evaluated now."""
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    defaults: dict[str, Any] = {}
    for name, default in zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True):
        defaults[name.id] = cx.counted(evaluate(cx, default))
    for name, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if default is not None:
            defaults[name.id] = cx.counted(evaluate(cx, default))
    return StaticValue(Closure(node, cx.frame, defaults))
