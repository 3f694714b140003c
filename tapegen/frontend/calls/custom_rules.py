"""User-defined derivative rules: functions that have one are called as they are, never inlined."""

from __future__ import annotations

import dis
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import CodeType, FunctionType, MethodDescriptorType
from typing import Any

from tapegen.errors import NotDifferentiable, TapegenError
from tapegen.frontend.calls.library_calls import is_library
from tapegen.frontend.lowering.emit import arg_type, call_type, emit_call
from tapegen.frontend.values.assumptions import Guard
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import struct_of
from tapegen.frontend.values.pytree import Leaf, leaf_type, tuple_of
from tapegen.frontend.values.result_types import any_size, is_self_contained
from tapegen.ir.nodes import Var
from tapegen.ir.printer import callable_text
from tapegen.ir.types import Array, Scalar, TupleOf, Type
from tapegen.rules.registry import plain, rule_of
from tapegen.rules.rule import Rule, signature_of

Probe = Callable[[FunctionType, Sequence[Any], Mapping[str, Any]], Context]
_PACKAGES = frozenset({"tapegen", "builtins"})


def own_rule(func: Any) -> Rule | None:
    """The rule that a user has registered for a function outside of libraries."""
    if is_library(func) or str(getattr(func, "__module__", "")).partition(".")[0] in _PACKAGES:
        return None
    return None if isinstance(func, MethodDescriptorType) else rule_of(func)


def call_own(
    cx: Context,
    func: Callable[..., Any],
    rule: Rule,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    hint: str | None,
    probe: Probe,
) -> Any:
    """A call of a function with a rule, which is one operation of the program.

    `probe` lowers a Python function separately, and returns the context, which has recorded the globals read.
    """
    func = plain(func)
    name = callable_text(func)
    for value in (*args, *kwargs.values()):
        content = struct_of(cx, value)
        if content is not None and content.kind not in ("tuple", "list"):
            raise cx.refusal(
                NotDifferentiable,
                f"{name} has a derivative rule and gets {'an' if content.kind == 'object' else 'a'} {content.kind}.",
                "Rules are for functions of numbers, arrays and options; pass the parts as arguments of their own.",
            )
    types = tuple(arg_type(cx, arg, True) for arg in args)
    named = {key: arg_type(cx, value, True) for key, value in kwargs.items()}
    type_ = call_type(cx, func, tuple(args), dict(kwargs))
    items = type_.items if isinstance(type_, TupleOf) else (type_,)
    if not all(isinstance(item, (Array, Scalar)) for item in items):
        raise cx.refusal(
            NotDifferentiable, f"{name} has a derivative rule, and its result is no number or array.", "Return floats."
        )
    if not is_self_contained(func, types, named):
        raise cx.refusal(
            NotDifferentiable,
            f"{name} has a derivative rule, and it changes its arguments, returns a part of one without a copy, or "
            "returns another type for other values.",
            "Let it return a new array or number and leave its arguments alone.",
        )
    out = _result(type_)
    for body in (rule.body, rule.pushforward):
        if isinstance(body, FunctionType):
            _note_body(cx, name, body)
            _note_text(cx, body, args, {**kwargs, **_results(body, args, kwargs, out)}, probe)
    _note_text(cx, func, args, kwargs, probe)
    return emit_call(cx, func, args, kwargs, hint, type_ if rule.kind == "partials" else any_size(type_))


def _note_body(cx: Context, name: str, body: FunctionType) -> None:
    """Scalar globals that the body of a rule reads become constants of the text; arrays cannot."""
    read = _globals_of(body.__code__)
    getters = {key: partial(body.__globals__.get, key) for key in read if key in body.__globals__}
    cells = zip(body.__code__.co_freevars, body.__closure__ or (), strict=True)
    getters |= {key: partial(getattr, cell, "cell_contents") for key, cell in cells}
    for key, getter in getters.items():
        value = getter()
        if isinstance(leaf_type(value), Array):
            raise cx.refusal(
                NotDifferentiable,
                f"the rule of {name} reads the array '{key}', which is no argument of it.",
                f"Make '{key}' an argument of {name}.",
            )
        if isinstance(value, (int, float, str, tuple)):
            cx.assumptions.guards.setdefault((id(body), key), Guard(getter, value, key))


def _globals_of(code: CodeType) -> dict[str, None]:
    """The globals that code and the functions inside it read; `co_names` has the names of attributes as well."""
    read = {item.argval: None for item in dis.get_instructions(code) if item.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            read |= _globals_of(inner)
    return read


def _result(type_: Type) -> Any:
    if isinstance(type_, TupleOf):
        return tuple_of(_result(item) for item in type_.items)
    return Leaf(Var("result_of_call", type_))


def _results(body: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> dict[str, Any]:
    """The values that the body of a rule takes besides the arguments: results, cotangents, tangents of arguments."""
    parameters = signature_of(body).parameters
    tangents = {f"{name}_dot": value for name, value in (*zip(parameters, args, strict=False), *kwargs.items())}
    given = {"out": out, "out_bar": out, **tangents}
    return {name: value for name, value in given.items() if name in parameters}


def _note_text(
    cx: Context,
    func: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    probe: Probe,
) -> None:
    """Record the globals that a Python function reads, so that a program may print the text of the function."""
    if not isinstance(func, FunctionType) or func in cx.assumptions.read_for:
        return  # the body of a rule may call the function itself
    try:
        read = probe(func, args, kwargs)
    except TapegenError:
        return  # it is called as it is
    cx.assumptions.update(read.assumptions)


__all__ = ["call_own", "own_rule"]
