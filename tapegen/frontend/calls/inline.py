"""Inlining of Python functions at their calls: frames, argument binding, recursion limits."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import gast
import numpy as np

from tapegen.errors import (
    CompileLimit,
    InternalError,
    NotDifferentiable,
    SourceUnavailable,
    TapegenError,
    UnsupportedSyntax,
)
from tapegen.frontend.calls.opaque_calls import call_opaque
from tapegen.frontend.calls.recursion import call_routine
from tapegen.frontend.expressions.expressions import enter, put_name
from tapegen.frontend.lowering.control_flow import body_of, run_body
from tapegen.frontend.lowering.generators import generator_of
from tapegen.frontend.source.callables import own_signature
from tapegen.frontend.source.liveness import Liveness, liveness_of
from tapegen.frontend.source.parse import parse_function
from tapegen.frontend.source.syntax_tree import bound_names, lent_names
from tapegen.frontend.templates import builtin_functions
from tapegen.frontend.values.captures import capture
from tapegen.frontend.values.constant_shapes import known_shape
from tapegen.frontend.values.context import MOST_INLINED, Context, NeedsConstant, Restart
from tapegen.frontend.values.materialize import expr_of, is_int, named, struct_of
from tapegen.frontend.values.pytree import UNKNOWN, Itself, Leaf, StaticValue, Struct, dict_of, leaves_of, tuple_of
from tapegen.frontend.values.state import Captured, Closure, Frame, known_value
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Tuple, Var
from tapegen.ir.types import INT, Array

MOST_WRITTEN_OUT = 60
"""Calls of a recursive function that are inlined; beyond that it becomes a routine."""

DEEPEST = 150
"""Nested recursive calls that are inlined of a function that cannot become a routine."""


@functools.cache
def _liveness(node: Any) -> Liveness:
    return liveness_of(node)


@functools.cache
def _bound_names(node: Any) -> frozenset[str]:
    return bound_names(node)


@functools.cache
def _lent_names(node: Any) -> frozenset[str]:
    return lent_names(node)


def function_frame(cx: Context, func: FunctionType, *, manager: bool = False) -> Frame:
    """The frame of a call of a plain Python function, or of the generator of a context manager."""
    parsed = parse_function(func, manager=manager)  # a function made by a decorator is called as it is
    cx.assumptions.sources.setdefault(func)
    tree = parsed.tree
    boxed = parsed.locals & _lent_names(tree)
    return Frame(tree, parsed, parsed.locals, _liveness(tree), None, func.__name__, boxed=boxed)


def inline_function(cx: Context, func: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Inline the body of a function at its call; that of a generator function is inlined at its consumer."""
    if func.__code__.co_flags & inspect.CO_GENERATOR:
        return generator_of(cx, StaticValue(func), args, dict(kwargs))
    return _inline_python(cx, func, args, kwargs)


def collect_items(cx: Context, func: FunctionType | Closure, args: Struct, kwargs: Struct) -> Any:
    """The list of the items that a generator yields."""
    named = dict(zip(kwargs.keys, kwargs.children, strict=True))
    if isinstance(func, Closure):
        return _inline_closure(cx, func, args.children, named)
    return _inline_python(cx, func, args.children, named)


def _inline_python(cx: Context, func: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    try:
        frame = function_frame(cx, func)
    except (UnsupportedSyntax, SourceUnavailable, NotDifferentiable) as error:
        found = call_opaque(cx, func, args, kwargs)
        if found is not None:
            return found
        if error.span is None:
            raise cx.refusal(type(error), error.reason, error.advice) from None
        if is_of_python(func):
            raise _refused_inside(cx, func, error) from None
        if _is_of_another_library(cx, func):
            raise _refused_in_library(cx, func, error) from None
        raise
    values = bind(cx, frame.parsed.signature, func, args, kwargs)
    try:
        return _inline(cx, frame, func, values)
    except InternalError:
        raise
    except TapegenError as error:
        if is_of_python(func):
            raise _refused_inside(cx, func, error) from None
        if _is_of_another_library(cx, func) and error.span is not None and _INSTALLED in error.span.file:
            raise _refused_in_library(cx, func, error) from None
        raise


def inline_manager(cx: Context, func: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Inline a generator up to its `yield`: the value yielded, and a function of the rest."""
    frame = function_frame(cx, func, manager=True)
    return _inline(cx, frame, func, bind(cx, frame.parsed.signature, func, args, kwargs))


def is_of_python(func: FunctionType) -> bool:
    """Whether a function belongs to Python's own library, so that errors do not point into it."""
    module = func.__module__ or ""  # functions made by exec with its own globals have no module
    return module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"


_INSTALLED = "-packages"
"""Part of the name of each file of an installed library."""


def _is_of_another_library(cx: Context, func: FunctionType) -> bool:
    """Whether a function belongs to an installed library, and the one that calls it does not."""
    library = (func.__module__ or "").partition(".")[0]
    caller = (cx.frame.parsed.func.__module__ or "").partition(".")[0]
    return _INSTALLED in func.__code__.co_filename and library != caller


def _refused_in_library(cx: Context, func: FunctionType, error: TapegenError) -> TapegenError:
    """A refusal inside another library, whose source is not the user's to change, reported at its call."""
    return cx.refusal(
        type(error),
        f"'{func.__module__}.{func.__qualname__}' cannot be followed: {error.reason}",
        "Call it outside of the differentiated function and pass what it returns, or give it a rule (tg.pullback).",
    )


def _refused_inside(cx: Context, func: FunctionType, error: TapegenError) -> TapegenError:
    """A refusal inside a function of Python's own library, reported at its call."""
    return cx.refusal(
        type(error),
        f"'{func.__module__}.{func.__qualname__}' cannot be followed: {error.reason}",
        "Write what it does with loops, branches and functions that have a rule.",
    )


def bind(
    cx: Context, signature: inspect.Signature, func: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of the parameters of a call."""

    def default(parameter: inspect.Parameter) -> Any:
        name = parameter.name

        def getter() -> Any:
            return own_signature(func).parameters[name].default

        variable = ("default", func.__code__, name)
        return capture(cx, parameter.default, getter, name, ("default", id(func), name), variable=variable)

    parameters = signature.parameters.values()
    return bind_parameters(
        cx, func.__name__, [(p.name, p.kind, p.default is not p.empty, p) for p in parameters], default, args, kwargs
    )


def bind_parameters(
    cx: Context,
    func_name: str,
    parameters: Sequence[tuple[str, Any, bool, Any]],
    default: Callable[[Any], Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    kinds = inspect.Parameter
    rest, keywords = list(args), dict(kwargs)
    values: dict[str, Any] = {}
    missing: list[str] = []
    for name, kind, has_default, parameter in parameters:
        if kind is kinds.VAR_POSITIONAL:
            values[name], rest = tuple_of(rest), []
        elif kind is kinds.VAR_KEYWORD:
            values[name], keywords = cx.new_cell(dict_of(keywords.items())), {}
        elif rest and kind is not kinds.KEYWORD_ONLY:
            if name in keywords and kind is not kinds.POSITIONAL_ONLY:
                cx.raise_(TypeError, f"{func_name}() got multiple values for argument '{name}'")
            values[name] = rest.pop(0)
        elif name in keywords and kind is not kinds.POSITIONAL_ONLY:
            values[name] = keywords.pop(name)
        elif has_default:
            values[name] = default(parameter)
        else:
            missing.append(name)
    if missing:
        listed = " and ".join(f"'{name}'" for name in missing)
        plural = "s" if len(missing) > 1 else ""
        cx.raise_(TypeError, f"{func_name}() missing {len(missing)} required positional argument{plural}: {listed}")
    if rest:
        cx.raise_(
            TypeError, f"{func_name}() takes {len(args) - len(rest)} positional arguments but {len(args)} were given"
        )
    if keywords:
        cx.raise_(TypeError, f"{func_name}() got an unexpected keyword argument '{next(iter(keywords))}'")
    return values


def inline_closure(cx: Context, closure: Closure, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if getattr(closure.node, "collects", False):
        return generator_of(cx, closure, args, dict(kwargs))
    return _inline_closure(cx, closure, args, kwargs)


def _inline_closure(cx: Context, closure: Closure, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    node = closure.node
    name = getattr(node, "name", "lambda_")
    parameters = _closure_parameters(node, closure.defaults)
    values = bind_parameters(cx, name, parameters, lambda parameter: closure.defaults[parameter], args, kwargs)
    names = _bound_names(node)
    boxed = names & _lent_names(node)
    frame = Frame(node, closure.frame.parsed, names, _liveness(node), closure.frame, name, boxed=boxed)
    return _inline(cx, frame, node, values)


def _closure_parameters(
    node: gast.FunctionDef | gast.Lambda, defaults: Mapping[str, Any]
) -> list[tuple[str, Any, bool, Any]]:
    kinds = inspect.Parameter
    args = node.args
    found: list[tuple[str, Any]] = [(arg.id, kinds.POSITIONAL_ONLY) for arg in args.posonlyargs]
    found += [(arg.id, kinds.POSITIONAL_OR_KEYWORD) for arg in args.args]
    if args.vararg is not None:
        found.append((args.vararg.id, kinds.VAR_POSITIONAL))
    found += [(arg.id, kinds.KEYWORD_ONLY) for arg in args.kwonlyargs]
    if args.kwarg is not None:
        found.append((args.kwarg.id, kinds.VAR_KEYWORD))
    return [(name, kind, name in defaults, name) for name, kind in found]


def _inline(cx: Context, frame: Frame, identity: Any, values: Mapping[str, Any]) -> Any:
    if identity in cx.recursion.called:
        return call_routine(cx, frame, identity, values)
    _check_recursion(cx, frame, identity, values)
    node, signature = frame.node, _signature_of(cx, values)
    outer_frame, outer_node, outer_origin, outer_fixed = cx.frame, cx.node, cx.origin, cx.fixed_origin
    is_own, sites = builtin_functions.is_own(frame.parsed.file), len(cx.call_sites)
    if not is_own:
        cx.call_sites.append(cx.span())
    cx.frame = frame
    cx.fixed_origin |= is_own  # its statements belong to the user's statement
    cx.calls.append((identity, signature))
    open_tries = cx.open_tries
    try:
        enter(cx, frame)
        for name, value in values.items():
            put_name(cx, name, value if isinstance(value, StaticValue) else named(cx, frame, name, value))
        result = run_body(cx, body_of(node))
        cx.open_tries = open_tries  # a 'return' inside 'with' has closed the contexts that it exits
    finally:
        cx.calls.pop()
        del cx.call_sites[sites:]
        cx.frame, cx.node, cx.origin, cx.fixed_origin = outer_frame, outer_node, outer_origin, outer_fixed
    if not frame.live.captured and not _makes_functions(node):
        for name in frame.locals:
            cx.state.vars.pop((frame, name), None)
    for leaf in leaves_of(result):
        if isinstance(leaf, Leaf) and isinstance(leaf.expr, Var) and leaf.expr.name.startswith("result#"):
            cx.symbols.titles.setdefault(leaf.expr, TEMPORARY)  # the caller may give a better name
    return result


@functools.cache
def _makes_functions(node: Any) -> bool:
    return any(isinstance(inner, (gast.FunctionDef, gast.Lambda)) for inner in gast.walk(node) if inner is not node)


def _signature_of(cx: Context, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """The known facts about the arguments of a call: calls with equal facts take equal paths."""
    return tuple(_knowledge(cx, value) for value in values.values())


def _knowledge(cx: Context, value: Any) -> Any:
    known = known_value(value)
    if known is not UNKNOWN:
        return StaticValue(known)
    if isinstance(value, Leaf):
        return value.type, known_shape(cx, value.expr)
    content = struct_of(cx, value) if not isinstance(value, Captured) else None
    if content is not None:
        return (content.kind, content.keys, tuple(_knowledge(cx, child) for child in content.children))
    return Itself(value)


def _check_recursion(cx: Context, frame: Frame, identity: Any, values: Mapping[str, Any]) -> None:
    """Make a function a routine where inlining would not end, or not soon; refuse if it cannot be one."""
    cx.inlined[identity] += 1
    active = [known for other, known in cx.calls if other is identity]
    refused = cx.recursion.refused.get(identity)
    if active and refused is None:
        if cx.inlined[identity] > MOST_WRITTEN_OUT or _signature_of(cx, values) in active:
            if cx.rules:
                raise cx.refusal(CompileLimit, f"'{frame.name}' calls itself in a rule.", "Write it as a loop.")
            cx.recursion.called.add(identity)
            raise Restart
        return
    if cx.inlined.total() > MOST_INLINED:
        raise CompileLimit(
            f"more than {MOST_INLINED} calls would be written out; the last one is '{frame.name}'.",
            "Replace recursion by a loop.",
            cx.span(),
        )
    if not active or (len(active) < DEEPEST and _signature_of(cx, values) not in active):
        return
    assert refused is not None
    wanted = [expr_of(cx, value) for value in values.values() if is_int(value) and known_value(value) is UNKNOWN]
    for value in values.values():
        if isinstance(value, Leaf) and isinstance(value.type, Array) and known_shape(cx, value.expr) is None:
            wanted.append(Call(np.size, (expr_of(cx, value),), (), INT))
    raise NeedsConstant(Tuple(tuple(wanted)), refused) if wanted else refused
