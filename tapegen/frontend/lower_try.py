"""`try` with handlers that go on: the body is read once, and what it may raise decides.

Some exceptions are seen while lowering, wherever they are raised: of attributes, imports, names, keys and types.
Others depend on the run: of these, a body is taken that cannot raise any.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import gast
import numpy as np

from tapegen.errors import UnsupportedSyntax
from tapegen.frontend.advice import TRY_ADVICE, instead_of_handlers
from tapegen.frontend.lower_context import Builder, Context, NotWhole, OpenIf, OpenLatch, OpenLoop
from tapegen.frontend.lower_expr import evaluate
from tapegen.frontend.lower_flow import End, Region, compound, live_behind, run
from tapegen.frontend.lower_handlers import handles
from tapegen.frontend.lower_live import has_escape
from tapegen.frontend.lower_state import known_value
from tapegen.frontend.lower_values import struct_of
from tapegen.frontend.structure import StaticValue
from tapegen.frontend.without_try import try_begins, try_ends
from tapegen.ir import ops, rewrite
from tapegen.ir.nodes import Assign, Call, Comment, Const, Raise, Var
from tapegen.ir.types import Array

_SEEN = (AttributeError, ImportError, NameError, KeyError, TypeError, AssertionError, NotImplementedError)
"""Exceptions that lowering writes down wherever a program may raise them."""

_NEVER_RAISES = frozenset(
    {operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.lt, operator.le, operator.gt}
    | {operator.ge, operator.eq, operator.ne, operator.not_, operator.and_, operator.or_, ops.and_, ops.or_, ops.ifelse}
    | {ops.dim, ops.shape, np.exp, np.log, np.sqrt, np.sin, np.cos, np.tan, np.tanh, np.abs, np.copy, np.size, np.sum}
)


@compound(gast.Try)
def lower_attempt(cx: Context, stmt: gast.If, rest: Sequence[gast.stmt], region: Region) -> bool:
    """Run what a `try` comes to; True when what follows it has been dealt with."""
    if cx.whole:
        raise NotWhole
    handlers = list(_handlers(cx, stmt.orelse))
    around = cx.open_tries
    trial, ends = Builder(), list[End]()
    with cx.block(trial, cx.state.copy()):
        run(cx, stmt.body, Region(live_behind(cx, stmt), ends))
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
    if chosen is stmt.body:
        handled = tuple(kind for kinds, _ in handlers for kind in kinds)
        _check(cx, trial.items, handled)
    if has_escape(chosen):
        run(cx, [*chosen, *rest], region)
        return True
    run(cx, chosen, Region(live_behind(cx, stmt)))
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
    """Refuse a body that may raise what is handled."""
    for_run = not all(issubclass(kind, _SEEN) for kind in handled)
    for item in _each(items):
        raises = isinstance(item, Raise) and any(
            issubclass(item.exception, kind) or issubclass(kind, item.exception) for kind in handled
        )
        if raises or (for_run and not _never_raises(item)):
            names = list(dict.fromkeys(kind.__name__ for kind in handled))
            raise cx.refusal(
                UnsupportedSyntax,
                f"whether what stands under 'try' raises {', '.join(names)} depends on the run, and it would leave "
                "a statement half done.",
                instead_of_handlers(names),
            )


def _each(items: Sequence[Any]) -> Iterator[Any]:
    for item in items:
        match item:
            case OpenIf(_, body, orelse):
                yield from _each(body.items)
                yield from _each(orelse.items)
            case OpenLoop(body):
                yield from _each(body.items)
        yield item


def _never_raises(item: Any) -> bool:
    match item:
        case OpenIf(test):
            parts: Sequence[Any] = (test,)
        case OpenLatch(pairs):
            parts = [value for _, value in pairs]
        case Assign(_, value):
            parts = (value,)
        case Comment():
            return True
        case _:
            return False
    return all(_is_safe(inner) for part in parts for inner in rewrite.subexpressions(part))


def _is_safe(expr: Any) -> bool:
    """Whether an expression raises nothing: of two arrays the shapes may not fit, and loads may miss the array."""
    if isinstance(expr, Call):
        arrays = sum(isinstance(arg.type, Array) for arg in expr.args)
        return expr.func in _NEVER_RAISES and arrays <= 1
    return isinstance(expr, Var | Const)


__all__ = ["lower_attempt"]
