"""Exception handling: `try` with handlers that continue, resolved by the exceptions that the body may raise.

Exceptions of attributes, imports, names, keys and types are found while lowering.  Others depend on the run: a body
under a handler for these is accepted only if it cannot raise any.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import gast
import numpy as np

from tapegen.errors import UnsupportedSyntax
from tapegen.frontend.calls.handlers import handles
from tapegen.frontend.expressions.expressions import evaluate
from tapegen.frontend.lowering.control_flow import End, Region, compound, live_after, run
from tapegen.frontend.lowering.warnings import is_of_warning
from tapegen.frontend.source.desugar_try import try_begins, try_ends
from tapegen.frontend.source.hints import TRY_ADVICE, instead_of_handlers
from tapegen.frontend.source.liveness import has_escape
from tapegen.frontend.values.context import Builder, Context, NeedsStatements, OpenIf, OpenLatch, OpenLoop
from tapegen.frontend.values.materialize import is_int, struct_of
from tapegen.frontend.values.pytree import Leaf, StaticValue
from tapegen.frontend.values.state import WARNINGS, known_value
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Assign, Call, Comment, Const, Load, Raise, Slice, Store, Tuple, Var
from tapegen.ir.types import Array, Scalar, is_floating

_SEEN = (AttributeError, ImportError, NameError, KeyError, TypeError, AssertionError, NotImplementedError)
"""Exceptions for which lowering emits a Raise wherever a program may raise them."""

_NEVER_RAISES = frozenset(
    {
        operator.not_,
        operator.and_,
        operator.or_,
        intrinsics.and_,
        intrinsics.or_,
        intrinsics.ifelse,
        intrinsics.dim,
        intrinsics.shape,
    }
)
_OF_SHAPES = frozenset(
    {operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.lt, operator.le, operator.gt}
    | {operator.ge, operator.eq, operator.ne, np.copy, abs, np.size, np.sum, np.all, np.any, np.where}
)
"""Operations that raise only ValueError, for shapes that do not match."""

_DIVISIONS = frozenset({operator.truediv, operator.floordiv, operator.mod})
_CASTS = frozenset({np.float64, np.float32, np.int64, np.complex128})


@compound(gast.Try)
def lower_attempt(cx: Context, stmt: gast.If, rest: Sequence[gast.stmt], region: Region) -> bool:
    """Lower a `try`; True when the statements after it have been lowered too."""
    if cx.whole:
        raise NeedsStatements
    handlers = list(_handlers(cx, stmt.orelse))
    around, warnings = cx.open_tries, WARNINGS in cx.state.vars
    trial, ends = Builder(), list[End]()
    with cx.block(trial, cx.state.copy()):
        run(cx, stmt.body, Region(live_after(cx, stmt), ends))
        reached = cx.state
    inside, cx.open_tries = cx.open_tries > around, around
    raised = trial.items[-1] if trial.dead and trial.items and isinstance(trial.items[-1], Raise) else None
    chosen = stmt.body
    if raised is not None and not ends:
        if inside:
            raise cx.refusal(
                UnsupportedSyntax,
                f"{raised.exception.__name__} leaves a 'try' inside of this one: its 'except' or 'finally' would run.",
                TRY_ADVICE,
            )
        found = next((body for kinds, body in handlers if issubclass(raised.exception, kinds)), None)
        if found is not None:
            cx.builder.items.extend(trial.items[:-1])
            cx.state, chosen = reached, found
            if not warnings:  # the exception has exited the 'with'
                cx.state.vars.pop(WARNINGS, None)
    if chosen is stmt.body:
        handled = tuple(kind for kinds, _ in handlers for kind in kinds)
        _check(cx, trial.items, handled)
    if has_escape(chosen):
        run(cx, [*chosen, *rest], region)
        return True
    run(cx, chosen, Region(live_after(cx, stmt)))
    return False


@handles(try_begins, takes="")
def _begin(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    cx.open_tries += 1
    return StaticValue(None)


@handles(try_ends, takes="")
def _end(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    cx.open_tries -= 1
    return StaticValue(None)


def _handlers(cx: Context, orelse: Sequence[gast.stmt]) -> Iterator[tuple[tuple[type, ...], Sequence[gast.stmt]]]:
    while orelse:
        (branch,) = orelse
        assert isinstance(branch, gast.If)
        given = [evaluate(cx, kind) for kind in branch.test.args]
        kinds = tuple(kind for value in given for kind in _kinds(cx, value)) if given else (BaseException,)
        yield kinds, branch.body
        orelse = branch.orelse


def _kinds(cx: Context, value: Any) -> tuple[type, ...]:
    content = struct_of(cx, value)
    found = known_value(value)
    kinds = found if isinstance(found, tuple) else (found,)
    if content is not None:
        kinds = tuple(known_value(child) for child in content.children)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise cx.refusal(UnsupportedSyntax, "'except' names something that is no exception class.", "Name the class.")
    return kinds


def _check(cx: Context, items: Sequence[Any], handled: tuple[type, ...]) -> None:
    """Refuse a body that may raise a handled exception at run time."""
    for item in _each(items):
        if isinstance(item, Raise):
            raises = not _stays(item) and any(_is_either(kind, item.exception) for kind in handled)
        else:
            for_run = [kind for kind in handled if not issubclass(kind, _SEEN)]
            possible = _at_run_time(cx, item) if for_run else ()
            raises = any(_is_either(kind, other) for kind in for_run for other in possible)
        if raises:
            names = list(dict.fromkeys(kind.__name__ for kind in handled))
            raise cx.refusal(
                UnsupportedSyntax,
                f"whether the body of 'try' raises {', '.join(names)} depends on the run, and it would leave "
                "a statement half done.",
                instead_of_handlers(names),
            )


def _stays(item: Raise) -> bool:
    """Whether a conditional Raise may stay in the body: a run that reaches it is refused.

    Code that lowering finds to fail for these types is meant for other types, and the other branch is the one that
    runs; the same holds for warnings turned into errors.
    """
    return issubclass(item.exception, _SEEN) or is_of_warning(item)


def _is_either(a: type, b: type) -> bool:
    return issubclass(a, b) or issubclass(b, a)


def _each(items: Sequence[Any]) -> Iterator[Any]:
    for item in items:
        match item:
            case OpenIf(_, body, orelse):
                yield from _each(body.items)
                yield from _each(orelse.items)
            case OpenLoop(body):
                yield from _each(body.items)
        yield item


_ANY = (Exception,)


def _at_run_time(cx: Context, item: Any) -> tuple[type[Exception], ...]:
    """The exceptions that a statement may raise, except those found by lowering."""
    own: tuple[type[Exception], ...] = ()
    match item:
        case OpenIf(test):
            parts: Sequence[Any] = (test,)
        case OpenLatch(pairs):
            parts = [value for _, value in pairs]
        case Assign(_, value):
            parts = (value,)
        case Store(array, index, value):
            made = cx.symbols.definitions.get(array)
            if not (isinstance(made, Call) and isinstance(made.func, np.ufunc)):  # other results may be read-only
                return _ANY
            parts = [value, *(part for part in index if not isinstance(part, Slice))]
            own = (IndexError,) if any(_has_axes(part) or is_int(Leaf(part)) for part in parts[1:]) else ()
            own += (ValueError,) if _has_axes(value) else ()
        case Comment():
            return ()
        case _:
            return _ANY
    inside = (kind for part in parts for inner in traversal.subexpressions(part) for kind in _of_expression(inner))
    return (*own, *inside)


def _has_axes(expr: Any) -> bool:
    """Whether an expression is an array with axes, which may not broadcast with others."""
    return isinstance(expr.type, Array) and not all(map(expr.type.is_unit, range(expr.type.rank)))


def _of_expression(expr: Any) -> tuple[type[Exception], ...]:
    """The exceptions of an operation: shapes of two arrays may not match, and indices may be out of bounds."""
    if isinstance(expr, Load):
        return (IndexError, ValueError)
    if not isinstance(expr, Call):
        return () if isinstance(expr, Var | Const | Tuple) else _ANY
    if expr.func is np.empty and all(
        isinstance(part, Const | Tuple) for arg in expr.args for part in traversal.subexpressions(arg)
    ):  # nothing, for a path
        return ()
    arrays = sum(isinstance(arg.type, Array) for arg in expr.args)
    shapes: tuple[type[Exception], ...] = (ValueError,) if sum(map(_has_axes, expr.args)) > 1 else ()
    if expr.func in _NEVER_RAISES or (expr.func in _CASTS and not arrays):
        return ()
    if expr.func in _OF_SHAPES or (isinstance(expr.func, np.ufunc) and expr.func.signature is None):
        return shapes
    of_python = all(isinstance(arg.type, Scalar) and arg.type.python for arg in expr.args)
    if expr.func in _DIVISIONS or (expr.func is operator.pow and is_floating(expr.type)):
        if not of_python:
            return shapes
        by_constant = expr.func is not operator.pow and isinstance(expr.args[1], Const) and bool(expr.args[1].value)
        return () if by_constant else (ArithmeticError,)
    return _ANY


__all__ = ["lower_attempt"]
