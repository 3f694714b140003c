"""Values of one of two kinds, and expressions of which only one side is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import gast

from tapegen.frontend.lower_context import Context, NotWhole
from tapegen.frontend.lower_join import branches
from tapegen.frontend.lower_state import Choice
from tapegen.frontend.lower_values import definite, poison_check
from tapegen.frontend.structure import StaticValue
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Expr


def quietly(cx: Context, compute: Callable[[], Any]) -> Any:
    """The value of an expression if it needs no statements, else None."""
    saved, outer = cx.state.copy(), cx.whole
    cx.whole = True
    try:
        return compute()
    except NotWhole:
        cx.state = saved
        if outer:
            raise
        return None
    finally:
        cx.whole = outer


def choose(cx: Context, test: Expr, a: Callable[[], Any], b: Callable[[], Any], hint: str | None) -> Any:
    """The value of one of two expressions, as the join of an If."""
    if cx.whole:
        raise NotWhole
    key = (cx.frame, f"{hint or TEMPORARY} ")  # no name in the text has a space

    def into(compute: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            cx.state.vars[key] = compute()

        return run

    branches(cx, test, into(a), into(b), None)
    return poison_check(cx, cx.state.vars.pop(key))


# ---- values of two kinds ------------------------------------------------------------------------------------


def split(cx: Context, values: Sequence[Any], compute: Callable[..., Any], hint: str | None = None) -> Any:
    """`compute(*values)` where some values are of two kinds: for each kind by itself."""
    for k, value in enumerate(values):
        if not isinstance(value, Choice):
            continue
        if any(isinstance(part, StaticValue) and part.value is None for part in (value.first, value.second)):
            return compute(*values[:k], definite(cx, value), *values[k + 1 :])
        first, second = ((*values[:k], part, *values[k + 1 :]) for part in (value.first, value.second))
        return choose(cx, value.test, partial(compute, *first), partial(compute, *second), hint)
    return compute(*values)


def refine(cx: Context, node: gast.AST, outcome: bool) -> None:
    """Note what a test has told: a variable is None, or is not."""
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


def _refine_name(cx: Context, name: str, is_none: bool) -> None:
    key = (cx.frame, name)
    value = cx.state.vars.get(key)
    if isinstance(value, Choice):
        for part in (value.first, value.second):
            if (isinstance(part, StaticValue) and part.value is None) == is_none:
                cx.state.vars[key] = part


@contextmanager
def refined(cx: Context) -> Iterator[None]:
    """Forget what tests have told when the expression is over."""
    before = {key: value for key, value in cx.state.vars.items() if isinstance(value, Choice)}
    try:
        yield
    finally:
        for key, value in before.items():
            if cx.state.vars.get(key) in (value.first, value.second):
                cx.state.vars[key] = value
