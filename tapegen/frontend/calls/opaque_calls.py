"""Opaque (foreign) calls: functions that have no rule and are not inlined run as they are, on inactive values.

Where all arguments are known at compile time (integer arguments of the program become static for it), the call runs at
entry, once per call of the program, and its result is a hidden argument: so it needs no compiled form.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.errors import MissingRule, NotDifferentiable, TapegenError
from tapegen.frontend.lowering.emit import arg_type, call_type, emit_call
from tapegen.frontend.source.hints import OF_SOLVERS
from tapegen.frontend.values.captures import computed
from tapegen.frontend.values.context import Context, NeedsConstant
from tapegen.frontend.values.materialize import expr_of, is_int, struct_of
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct
from tapegen.frontend.values.result_types import any_size, is_self_contained
from tapegen.frontend.values.state import Closure, known_value
from tapegen.ir.printer import callable_text
from tapegen.ir.types import Array, Scalar, TupleOf
from tapegen.rules.registry import refusal_of

_OTHER_EACH_TIME = frozenset(
    {"time", "random", "secrets", "os", "posix", "uuid", "io", "builtins", "threading", "_random"}
)

_SEEDS = frozenset({"random_state", "rng", "seed"})
"""Parameters of scipy functions that take generators."""


def call_foreign(
    cx: Context, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], hint: str | None
) -> Any:
    """A function of NumPy, scipy or math without a rule; differentiating it is refused later."""
    _refuse_hidden_draws(cx, func, args, kwargs)
    found = call_at_entry(cx, func, args, kwargs)
    if found is not None:
        return found
    refusal = refusal_of(func)
    if refusal is None:
        return _operation_on_functions(cx, func, args, kwargs, hint)
    try:
        if not any(map(_is_function, (*args, *kwargs.values()))):
            return _operation(cx, func, args, kwargs, hint)
    except (TapegenError, TypeError):  # the refusal gives the better reason
        pass
    raise cx.refusal(MissingRule, f"{callable_text(func)} is not differentiated: {refusal.reason}", refusal.advice)


def _refuse_hidden_draws(cx: Context, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse a library function that draws random numbers, unless it is given a seed, which determines them."""
    if not inspect.isroutine(func):  # creating a distribution draws nothing
        return
    try:
        signature = inspect.signature(func)
        given = signature.bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return
    named = [name for name in signature.parameters if name in _SEEDS]
    if func.__name__ == "rvs":  # of scipy.stats, whose signature is (*args, **kwargs)
        given, named = dict(kwargs), ["random_state"]
    for name in named:
        seed = known_value(given[name]) if name in given else None
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise cx.refusal(
                NotDifferentiable,
                f"{callable_text(func)} draws random numbers from a generator that is not followed.",
                f"Draw with the methods of a np.random.Generator, or pass a seed: {name}=0.",
            )


def _operation_on_functions(
    cx: Context, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], hint: str | None
) -> Any:
    """A call that is emitted as it is; where it cannot be, the functions among its arguments are the reason."""
    try:
        return _operation(cx, func, args, kwargs, hint)
    except (TapegenError, TypeError):
        classes = (value for value in (*args, *kwargs.values()) if not isinstance(known_value(value), type))
        if not any(map(_is_function, classes)):
            raise
    raise cx.refusal(
        MissingRule,
        f"{callable_text(func)} is given a function to call, and has no derivative rule.",
        OF_SOLVERS.get(
            callable_text(func),
            "Call it outside of the differentiated function, or give the function that calls it a rule (tg.pullback).",
        ),
    )


def _is_function(value: Any) -> bool:
    return isinstance(value, StaticValue) and (callable(value.value) or isinstance(value.value, Closure))


def _operation(
    cx: Context, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], hint: str | None
) -> Any:
    """A call that is emitted as it is."""
    type_ = call_type(cx, func, tuple(args), dict(kwargs))
    items = type_.items if isinstance(type_, TupleOf) else (type_,)
    types = [arg_type(cx, arg, True) for arg in args]
    named = {name: arg_type(cx, value, True) for name, value in kwargs.items()}
    if not all(isinstance(item, (Array, Scalar)) for item in items) or not is_self_contained(func, tuple(types), named):
        raise cx.refusal(
            MissingRule,
            f"{callable_text(func)} has no derivative rule, and its result shares memory with its arguments, or has "
            "another type for other values, or it changes its arguments.",
            "Write it with functions that have a rule.",
        )
    return emit_call(cx, func, args, kwargs, hint, any_size(type_))


def call_opaque(cx: Context, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A call of anything else whose arguments are all known; None where it cannot run at entry."""
    if isinstance(getattr(func, "__self__", None), (str, bytes, frozenset, range)):  # it depends on nothing else
        return call_at_entry(cx, func, args, kwargs)
    module = getattr(func, "__module__", None) or type(getattr(func, "__self__", None)).__module__
    if not (args or kwargs) or str(module).partition(".")[0] in _OTHER_EACH_TIME:
        return None
    return call_at_entry(cx, func, args, kwargs)


def call_at_entry(cx: Context, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of a call that runs at entry, as all arguments are known at compile time; else None."""
    values = [_known(cx, arg) for arg in args]
    named = {name: _known(cx, value) for name, value in kwargs.items()}
    unknown = [
        arg
        for arg, value in zip((*args, *kwargs.values()), (*values, *named.values()), strict=True)
        if value is UNKNOWN
    ]
    if unknown:
        if all(_is_argument(cx, arg) for arg in unknown):
            refusal = cx.refusal(NotDifferentiable, f"{callable_text(func)} is called on a value.", "Pass a constant.")
            raise NeedsConstant(expr_of(cx, unknown[0]), refusal)
        return None

    def getter() -> Any:
        return func(*values, **named)

    given = (repr(values), repr(named))
    try:
        with np.errstate(all="ignore"):
            value = getter()
    except Exception:
        return None  # it raises when the program runs, or is refused
    if given != (repr(values), repr(named)):
        return None  # it would change copies, which are then lost
    name = getattr(func, "__name__", "result")
    return _fresh(cx, computed(cx, value, getter, name, ("call", func, *given)))


def _fresh(cx: Context, value: Any) -> Any:
    """A copy of the arrays for every call, as the program may write into them."""
    if isinstance(value, Leaf) and isinstance(value.type, Array):
        return emit_call(cx, np.copy, (value,))
    if isinstance(value, Struct):
        return replace(value, children=tuple(_fresh(cx, child) for child in value.children))
    return value


def _known(cx: Context, value: Any) -> Any:
    known = known_value(value)
    if known is not UNKNOWN:
        return known
    content = struct_of(cx, value)
    if content is None or content.kind not in ("tuple", "list"):
        return UNKNOWN
    children = [_known(cx, child) for child in content.children]
    return UNKNOWN if any(child is UNKNOWN for child in children) else content.cls(children)


def _is_argument(cx: Context, value: Any) -> bool:
    """Whether an integer depends only on integer arguments of the program."""
    if not isinstance(value, Leaf) or not is_int(value):
        return False
    sources = cx.symbols.int_sources(expr_of(cx, value))
    return bool(sources) and sources <= cx.symbols.samples.keys()
