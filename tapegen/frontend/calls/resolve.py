"""Call resolution: finds the function of a call, binds its arguments, and dispatches."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any

import gast
import numpy as np

from tapegen.errors import NotDifferentiable, TapegenError
from tapegen.frontend.calls.batches import Batched, batch_call, batched_call
from tapegen.frontend.calls.communication import call_of_mpi, of_mpi
from tapegen.frontend.calls.constructors import construct
from tapegen.frontend.calls.custom_rules import call_own, own_rule
from tapegen.frontend.calls.handlers import HANDLERS, METHODS, PASSED_ON, handled
from tapegen.frontend.calls.inline import function_frame, inline_closure, inline_function
from tapegen.frontend.calls.library_calls import call_library, is_library
from tapegen.frontend.calls.nested_derivatives import (
    Linear,
    Pullback,
    derivative_call,
    linear_call,
    marked_call,
    pullback_call,
)
from tapegen.frontend.calls.opaque_calls import call_opaque
from tapegen.frontend.calls.outline import Derivative
from tapegen.frontend.expressions.comprehensions import ARRAY_MAKERS, consume, rows_as_arrays
from tapegen.frontend.expressions.expressions import elements, evaluate, evaluates
from tapegen.frontend.expressions.iterables import iterator
from tapegen.frontend.expressions.progress_bars import shows_progress, with_progress
from tapegen.frontend.expressions.strings import emit_message, formatted
from tapegen.frontend.expressions.unions import as_bool, split
from tapegen.frontend.library.output_arrays import refuse_reading_while_writing
from tapegen.frontend.lowering.emit import arg_type, emit_call
from tapegen.frontend.lowering.generators import listed
from tapegen.frontend.source.callables import is_elementwise, unwrap
from tapegen.frontend.templates import builtin_functions
from tapegen.frontend.templates.library_functions import of_bottleneck
from tapegen.frontend.values.captures import bound_value, capture, is_method, special_method, watch
from tapegen.frontend.values.context import Context, NeedsConstant, Restart, Unreachable
from tapegen.frontend.values.library_objects import call_of_library_object
from tapegen.frontend.values.materialize import adopt, describe, expr_of, is_int, not_, static, struct_of
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, tuple_of
from tapegen.frontend.values.result_types import any_size
from tapegen.frontend.values.state import Bound, Choice, Closure, Method, Series, SliceValue, known_value
from tapegen.ir import intrinsics
from tapegen.ir.protocols import mark_of, refusal_by
from tapegen.rules.helpers import is_compile_time
from tapegen.rules.registry import rule_of

# ---- calls ---------------------------------------------------------------------------------------------------------


@evaluates(gast.Call)
def _call(cx: Context, node: gast.Call, hint: str | None) -> Any:
    func = evaluate(cx, node.func)
    if len(node.args) == 1 and isinstance(node.args[0], (gast.ListComp, gast.GeneratorExp)):
        return _consumed(cx, func, node, hint)
    args = elements(cx, node.args)
    return call_value(cx, func, args, _keywords(cx, node), hint)


def _keywords(cx: Context, node: gast.Call) -> dict[str, Any]:
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = evaluate(cx, keyword.value)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
            continue
        content = struct_of(cx, value)
        if content is None or content.kind != "dict":
            raise cx.refusal(NotDifferentiable, "'**' needs a dict with known keys.", "Write the keywords out.")
        kwargs.update(zip(content.keys, content.children, strict=True))
    return kwargs


def _consumed(cx: Context, func: Any, node: gast.Call, hint: str | None) -> Any:
    """A call whose only positional argument is a comprehension."""
    (argument,) = node.args
    consumer = func.value if isinstance(func, StaticValue) else None
    if isinstance(argument, gast.ListComp) and any(consumer is maker for maker in ARRAY_MAKERS):
        argument = rows_as_arrays(argument)
    value, done = consume(cx, argument, None if node.keywords else consumer)
    return value if done else call_value(cx, func, [value], _keywords(cx, node), hint)


def call_value(cx: Context, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], hint: str | None = None) -> Any:
    """`func(*args, **kwargs)` of abstract values."""
    args, kwargs = list(args), dict(kwargs)
    given = (*args, *kwargs.values())
    if isinstance(func, Choice) or (any(isinstance(arg, Choice) for arg in given) and not is_inlined(func)):
        if isinstance(func, StaticValue) and args and (answer := _asked(cx, func.value, args, kwargs)) is not None:
            return answer

        def called(chosen: Any, *parts: Any) -> Any:
            named = dict(zip(kwargs, parts[len(args) :], strict=True))
            return call_value(cx, chosen, parts[: len(args)], named, hint)

        return split(cx, (func, *given), called, hint)
    if isinstance(func, StaticValue) and any(func.value is builtin for builtin in _TAKE_ALL) and args:
        args[0] = listed(cx, args[0])
    if isinstance(func, Bound):
        return call_value(cx, func.func, [*func.args, *args], {**func.kwargs, **kwargs}, hint)
    if isinstance(func, StaticValue):
        return _call_static(cx, func.value, args, kwargs, hint)
    content = struct_of(cx, func)
    if content is not None and content.kind == "object":
        call = special_method(cx, content.cls, "__call__")
        if is_method(call):
            return call_value(cx, StaticValue(call), [func, *args], kwargs, hint)
    cx.raise_(TypeError, f"'{_class_name(cx, func)}' object is not callable")


def _asked(cx: Context, func: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What a question of Python's about a value of two kinds (None is one) says, where its kind alone answers it."""
    value, *others = args
    if not isinstance(value, Choice) or kwargs or any(isinstance(other, Choice) for other in others):
        return None
    if func is bool and not others:
        return as_bool(cx, value)
    if not any(func is question for question in (isinstance, callable, hasattr)):
        return None
    answers = [
        known_value(call_value(cx, StaticValue(func), [part, *others], {})) for part in (value.first, value.second)
    ]
    if not all(isinstance(answer, bool) for answer in answers):
        return None
    if answers[0] == answers[1]:
        return StaticValue(answers[0])
    test = value.test if answers[0] else not_(value.test)
    assert not isinstance(test, bool)
    return Leaf(test)


_TAKE_ALL = (sum, min, max, any, all, sorted)
"""Builtins that may read all items of their argument."""


def is_inlined(func: Any) -> bool:
    """Whether a call inlines Python code, which handles union arguments itself."""
    return (
        isinstance(func, StaticValue) and isinstance(func.value, (Closure, FunctionType)) and not is_library(func.value)
    )


def _class_name(cx: Context, value: Any) -> str:
    content = struct_of(cx, value)
    if content is not None:
        return content.cls.__name__
    return "float" if isinstance(value, Leaf) else type(value).__name__


@functools.cache
def _needed_names(func: Any) -> tuple[str, ...]:
    """The parameters of a function without a default."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):  # compiled, without a signature
        return ()
    return tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty)


def _call_static(cx: Context, func: Any, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    if isinstance(func, Closure):
        return inline_closure(cx, func, args, kwargs)
    if isinstance(func, Method):
        method = METHODS.get((func.kind, func.name))
        if method is None:
            raise cx.refusal(
                NotDifferentiable,
                f"the method '{func.name}' of {describe(cx, args[0])} is not supported.",
                "Write a loop.",
            )
        return method.call_method(cx, func.name, args, kwargs, hint)
    if isinstance(func, Derivative):
        return derivative_call(cx, func, args, kwargs)
    if isinstance(func, Batched):
        return batch_call(cx, func, args, kwargs)
    if isinstance(func, Pullback):
        return pullback_call(cx, func, args, kwargs)
    if isinstance(func, Linear):
        return linear_call(cx, func, args, kwargs)
    mark = mark_of(func)
    if mark is not None and mark.kind == "batch":
        return batched_call(cx, func, mark, args, kwargs)
    if mark is not None:
        return marked_call(cx, func, mark, args, kwargs)
    if shows_progress(func):
        return with_progress(cx, func, args, kwargs)
    if intrinsics.tells(func):
        return emit_message(cx, func, args, kwargs)
    if of_mpi(func):
        return call_of_mpi(cx, func, args, kwargs)
    handler = handled(func)
    if handler is not None:
        if handler.parameters is PASSED_ON and kwargs:
            by_name = itertools.takewhile(kwargs.__contains__, _needed_names(func)[len(args) :])
            args = [*args, *map(kwargs.pop, tuple(by_name))]
        made = handler.call(cx, func, args, kwargs, hint)
        fresh = isinstance(made, Series) and made.iterator is None and func not in (range, range.__getitem__)
        return iterator(cx, made) if fresh else made
    if is_compile_time(func):
        return _run_now(cx, func, args, kwargs)
    if _name_of(func) == "format" and isinstance(getattr(func, "__self__", None), str):
        return formatted(cx, func.__self__, args, kwargs)
    like = getattr(func, "type_like", None) if isinstance(func, FunctionType) else None
    if like is not None:
        types = (arg_type(cx, arg, True) for arg in args)
        return emit_call(cx, func, args, {}, hint, any_size(like(*types)))
    own = own_rule(func)
    if own is not None:
        return call_own(cx, func, own, args, kwargs, hint, functools.partial(_read_by, cx))
    rule = rule_of(func)
    if rule is not None and rule.written:
        refuse_reading_while_writing(cx, func, args, kwargs)
        assert isinstance(rule.body, FunctionType)
        return inline_function(cx, rule.body, args, kwargs)
    made = call_of_library_object(cx, func, args, kwargs, hint)
    if made is not None:
        return made
    if rule is not None or is_library(func):
        return call_library(cx, func, args, kwargs, hint)
    if _name_of(func) == "prange" and (getattr(func, "__module__", "") or "").startswith("numba"):
        return replace(HANDLERS[range].call(cx, range, args, kwargs, hint), parallel=True)
    if type(func).__module__.startswith("numba.core.types") and hasattr(np, str(func)):
        return call_library(cx, getattr(np, str(func)), args, kwargs, hint)  # numba.float64(x)
    refusal = refusal_by(func)
    if refusal is not None:  # written in Python, but not differentiable
        reason, advice = refusal
        raise cx.refusal(NotDifferentiable, f"'{_qualname_of(func)}' is called here: {reason}", advice)
    if isinstance(func, type):
        return construct(cx, func, args, kwargs)
    if isinstance(func, MethodType) and not isinstance(func.__self__, type):
        owner = capture(cx, func.__self__, lambda: func.__self__, func.__func__.__name__, ("self", id(func.__self__)))
        return call_value(cx, StaticValue(func.__func__), [owner, *args], kwargs, hint)
    if isinstance(func, functools.partial):
        bound = [
            bound_value(cx, value, f"{_name_of(func.func)}_{k}", (id(func), k)) for k, value in enumerate(func.args)
        ]
        path = ("keywords", id(func))
        watch(cx, path, lambda: tuple(func.keywords))
        named_ = {
            name: capture(cx, value, functools.partial(_keyword, func, name), name, (path, name))
            for name, value in func.keywords.items()
        }
        return call_value(cx, StaticValue(func.func), [*bound, *args], {**named_, **kwargs}, hint)
    if type(func).__name__ == "_Intrinsic" and type(func).__module__.startswith("numba."):
        raise cx.refusal(
            NotDifferentiable,
            f"'{getattr(func, '_name', 'this')}' is an intrinsic of numba, which has no Python text to transform.",
            "Write what it computes with functions that have rules (python -m tapegen rules).",
        )
    if not callable(func):
        cx.raise_(TypeError, f"'{type(func).__name__}' object is not callable")
    if is_elementwise(func) and any(isinstance(arg, Leaf) and getattr(arg.type, "rank", 0) for arg in args):
        return call_value(cx, StaticValue(builtin_functions.elementwise), [StaticValue(func), *args], kwargs, hint)
    if isinstance(func, FunctionType):
        return inline_function(cx, func, args, kwargs)
    if (text := of_bottleneck(func)) is not None:
        return call_value(cx, StaticValue(text), args, kwargs, hint)
    if isinstance(func, functools._lru_cache_wrapper) and not _calls_itself(func.__wrapped__):
        return call_value(cx, StaticValue(func.__wrapped__), args, kwargs, hint)
    try:
        function, first, more = unwrap(func)
    except NotDifferentiable as error:
        found = call_opaque(cx, func, args, kwargs)
        if found is not None:
            return found
        refused = cx.refusal(type(error), error.reason, error.advice)
        if isinstance(func, functools._lru_cache_wrapper):
            _ask_for_integers(cx, (*args, *kwargs.values()), refused)
        raise refused from None
    given = [bound_value(cx, value, f"{function.__name__}_{k}", (id(func), k)) for k, value in enumerate(first)]
    keywords = {name: bound_value(cx, value, name, (id(func), name)) for name, value in more.items()}
    if function is not func and own_rule(function) is not None:
        return call_value(cx, StaticValue(function), [*given, *args], {**keywords, **kwargs}, hint)
    return inline_function(cx, function, [*given, *args], {**keywords, **kwargs})


def _calls_itself(func: Any) -> bool:
    """Whether a function is recursive: without its cache, it would make too many calls."""
    return not isinstance(func, FunctionType) or func.__name__ in func.__code__.co_names


def _ask_for_integers(cx: Context, args: Sequence[Any], refusal: TapegenError) -> None:
    """Unroll loops whose counters are arguments here, so that the call can run at entry."""
    unknown = [arg for arg in args if known_value(arg) is UNKNOWN]
    if unknown and all(isinstance(arg, Leaf) and is_int(arg) for arg in unknown):
        raise NeedsConstant(expr_of(cx, unknown[0]), refusal)


def _read_by(outer: Context, func: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Context:
    """The context after lowering a function separately, which records the globals it read."""
    cx = Context()
    cx.call = call_value
    cx.assumptions.read_for = outer.assumptions.read_for | {func}
    cx.recursion, cx.routines, cx.caller = type(outer.recursion)(), type(outer.routines)(), type(outer.caller)()
    cx.frame = function_frame(cx, func)
    with contextlib.suppress(Unreachable, NeedsConstant, Restart):
        inline_function(cx, func, args, kwargs)
    return cx


def _keyword(func: functools.partial[Any], name: str) -> Any:
    return func.keywords[name]


def _name_of(func: Any) -> str:
    return getattr(func, "__name__", type(func).__name__)


def _qualname_of(func: Any) -> str:
    return getattr(func, "__qualname__", _name_of(func)).removesuffix(".__call__")


def _run_now(cx: Context, func: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Run a compile-time helper of the rules."""
    values = [_plain(cx, arg) for arg in args]
    try:
        result = func(*values, **{name: _plain(cx, value) for name, value in kwargs.items()})
    except NotDifferentiable as error:
        raise cx.refusal(type(error), error.reason, error.advice) from None
    return adopt(cx, _known(result))


def _plain(cx: Context, value: Any) -> Any:
    if isinstance(value, SliceValue):
        return slice(
            *(None if part is None else static(cx, part, "a bound") for part in (value.lo, value.hi, value.step))
        )
    return static(cx, value, "this argument")


def _known(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple_of(map(_known, value))
    return StaticValue(value)
