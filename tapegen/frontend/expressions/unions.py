"""Union values (one of two kinds), and conditional expressions.

A read of a union is lowered once for each kind, and the results are joined (`split`).  An in-place change is lowered
once for each kind too (`each_kind`): an array is written into and a scalar is rebound, so no joined copy is written.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import gast

from tapegen.errors import CompileLimit, TapegenError
from tapegen.frontend.lowering.branches import branches
from tapegen.frontend.values.context import Context, NeedsStatements, Unreachable
from tapegen.frontend.values.materialize import definite, poison_check, truth
from tapegen.frontend.values.narrowing import is_only_known, narrow
from tapegen.frontend.values.pytree import Leaf, StaticValue
from tapegen.frontend.values.state import Choice
from tapegen.ir import intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Expr, Var
from tapegen.ir.types import BOOL


def quietly(cx: Context, compute: Callable[[], Any]) -> Any:
    """The value of an expression if it needs no statements, else None."""
    saved, outer = cx.state.copy(), cx.whole
    cx.whole = True
    try:
        return compute()
    except NeedsStatements:
        cx.state = saved
        if outer:
            raise
        return None
    finally:
        cx.whole = outer


def choose(cx: Context, test: Expr, a: Callable[[], Any], b: Callable[[], Any], hint: str | None) -> Any:
    """A conditional expression, as the join of an If."""
    if cx.whole:
        raise NeedsStatements
    key = (cx.frame, f"{hint or TEMPORARY} ")  # no name in the text has a space

    def into(compute: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            cx.state.vars[key] = compute()

        return run

    branches(cx, test, into(a), into(b), None)
    return poison_check(cx, cx.state.vars.pop(key))


# ---- union values -------------------------------------------------------------------------------------------


def split(cx: Context, values: Sequence[Any], compute: Callable[..., Any], hint: str | None = None) -> Any:
    """`compute(*values)` where some values are unions: lowered for each kind separately."""
    return _by_kind(cx, values, compute, lambda test, first, second: choose(cx, test, first, second, hint))


def each_kind(cx: Context, values: Sequence[Any], change: Callable[..., None]) -> None:
    """`change(*values)` for its effects, where some values are unions: lowered for each kind separately."""

    def both(test: Expr, first: Callable[[], None], second: Callable[[], None]) -> None:
        branches(cx, test, first, second, None)

    _by_kind(cx, values, change, both)


def _by_kind(cx: Context, values: Sequence[Any], compute: Callable[..., Any], both: Callable[..., Any]) -> Any:
    """Call `compute` for the first kind and for the second; `both` joins the results."""
    choice = next((value for value in values if isinstance(value, Choice)), None)
    if choice is None:
        return compute(*values)
    if is_none(choice.first) or is_none(choice.second):
        certain = definite(cx, choice)
        return _by_kind(cx, [certain if value is choice else value for value in values], compute, both)
    refusals: list[TapegenError] = []

    def side(first: bool) -> Callable[[], Any]:
        given = [narrowed(value, choice.test, first) for value in values]

        def todo() -> Any:
            narrow(cx, choice, first)
            return _by_kind(cx, given, compute, both)

        return partial(_refused_at_run_time, cx, refusals, todo)

    try:
        return both(choice.test, side(True), side(False))
    except Unreachable:
        if refusals:  # every kind is refused
            raise refusals[0] from None
        raise


def _refused_at_run_time(cx: Context, refusals: list[TapegenError], compute: Callable[[], Any]) -> Any:
    """`compute()`; a refusal of one kind only becomes an error at run time, when a value is of this kind."""
    try:
        return compute()
    except CompileLimit:
        raise
    except TapegenError as refusal:
        refusals.append(refusal)
        cx.raise_(ValueError, f"{refusal.reason.rstrip('.')}. {refusal.advice}")


def truth_of(cx: Context, value: Any) -> bool | Expr:
    """The truth of a value that may be a union; checks that one kind needs run for that kind only."""
    if not isinstance(value, Choice):
        return truth(cx, value)
    whole = quietly(cx, lambda: truth(cx, value))
    if whole is not None:
        return whole
    first, second = partial(as_bool, cx, value.first), partial(as_bool, cx, value.second)
    return truth(cx, choose(cx, value.test, first, second, None))


def as_bool(cx: Context, value: Any) -> Any:
    """`bool(value)` as a value."""
    tested = truth_of(cx, value)
    if isinstance(tested, bool):
        return StaticValue(tested)
    return Leaf(tested if tested.type == BOOL else Call(bool, (tested,), (), BOOL))  # NumPy's bool is not `True`


def narrowed(value: Any, test: Expr, first: bool) -> Any:
    """A value narrowed by the outcome of a test of its kind."""
    if isinstance(value, Choice) and value.test == test:
        return value.first if first else value.second
    return value


def is_none(value: Any) -> bool:
    return isinstance(value, StaticValue) and value.value is None


def refine(cx: Context, node: gast.AST, outcome: bool) -> None:
    """Narrow a variable by a test: it is None, or is not."""
    match node:
        case gast.UnaryOp() if isinstance(node.op, gast.Not):
            refine(cx, node.operand, not outcome)
        case gast.BoolOp() if isinstance(node.op, gast.And) == outcome:
            for part in node.values:
                refine(cx, part, outcome)
        case gast.Compare() if len(node.ops) == 1 and isinstance(node.ops[0], (gast.Is, gast.IsNot)):
            other = node.comparators[0]
            if isinstance(node.left, gast.Name) and isinstance(other, gast.Constant) and other.value is None:
                _refine_name(cx, node.left.id, isinstance(node.ops[0], gast.Is) == outcome)


def _refine_name(cx: Context, name: str, outcome: bool) -> None:
    key = (cx.frame, name)
    value = cx.state.vars.get(key)
    if isinstance(value, Choice):
        for part in (value.first, value.second):
            if is_none(part) == outcome:
                cx.state.vars[key] = part


def learn(cx: Context, test: Expr, outcome: bool) -> None:
    """Note what the outcome of a test tells of the kinds of values, in all names that hold them."""
    match test:
        case Call(operator.not_, (inner,)):
            learn(cx, inner, not outcome)
        case Call(intrinsics.and_ | intrinsics.or_ as func, parts) if (func is intrinsics.and_) == outcome:
            for part in parts:
                learn(cx, part, outcome)
        case Var():
            for key, value in cx.state.vars.items():
                cx.state.vars[key] = narrowed(value, test, outcome)


@contextmanager
def refined(cx: Context) -> Iterator[None]:
    """Undo the narrowing by tests at the end of the expression."""
    before = {key: value for key, value in cx.state.vars.items() if isinstance(value, Choice)}
    try:
        yield
    finally:
        for key, value in before.items():
            if is_only_known(value, [cx.state.vars.get(key)]):
                cx.state.vars[key] = value
