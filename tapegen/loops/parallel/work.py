"""How much work a loop is: an expression of the sizes of arrays, in units of about a nanosecond."""

from __future__ import annotations

import operator
from collections.abc import Set
from typing import Any

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import linear, plus, times
from tapegen.ir.nodes import Block, Call, Comment, Const, Expr, For, If, Load, Stmt, Store, Var, While
from tapegen.ir.types import INT, Array, ListOf
from tapegen.loops.vectorize.strip_mining import LONG

_CALL, _LONG, _DIVISION = 20, 10, 4
"""The work of a call of a library on arrays (for each element), of an elementary function, and of a division."""

_TRIPS = 8
"""Iterations of a loop whose number is not known before the loop around it."""


def trips_of(loop: For) -> Expr:
    """The number of iterations of a loop with a constant step."""
    assert isinstance(loop.step, Const) and isinstance(loop.step.value, int)
    step = loop.step.value
    start, stop = (loop.start, loop.stop) if step > 0 else (loop.stop, loop.start)
    gap = (linear(stop) - linear(start)).expr
    if abs(step) > 1:
        rounded = plus(gap, abs(step) - 1)
        gap = Call(operator.floordiv, (rounded, Const(abs(step))), (), INT)
    if isinstance(gap, Const):
        return Const(max(int(gap.value), 0))  # type: ignore[call-overload]
    return gap if _is_size(gap) else Call(max, (gap, Const(0)), (), INT)


def _is_size(expr: Expr) -> bool:
    """Whether an expression is never negative."""
    return isinstance(expr, Call) and expr.func in (intrinsics.dim, len)


def work_of_loop(loop: For) -> Expr:
    """The work of a loop with a constant step."""
    return times(trips_of(loop), work_of_iteration(loop))


def work_of_iteration(loop: For) -> Expr:
    """The work of one iteration, as far as it is known before the loop."""
    return _work_of(loop.body, {loop.target, *traversal.assigned_in(*loop.body)})


def _work_of(block: Block, changing: Set[Var]) -> Expr:
    """The work of one run of a block; `changing` are variables that must not occur in it."""
    units = 0
    terms: list[Expr] = []
    for stmt in block:
        units += _own(stmt)
        match stmt:
            case For(_, _, _, Const(), body):
                count = trips_of(stmt)
                inner = _work_of(body, changing)
                if traversal.loads(count) or not changing.isdisjoint(traversal.free_vars(count)):
                    count = Const(_TRIPS)
                terms.append(times(count, inner))
            case For() | While():
                terms.append(times(Const(_TRIPS), _work_of(stmt.body, changing)))
            case If():
                sides = [_work_of(side, changing) for side in stmt.blocks]
                terms += sides
    total: Expr = Const(units)
    for term in terms:
        total = plus(total, term)
    return total


def _own(stmt: Stmt) -> int:
    """The work of a statement itself."""
    if isinstance(stmt, Comment):
        return 0
    units = int(isinstance(stmt, Store))
    work: list[Any] = list(stmt.headers if not isinstance(stmt, Store) else (stmt.value,))
    while work:
        part = work.pop()
        if isinstance(part, Load):  # the address takes no time of its own
            units += 1
        elif isinstance(part, Call):
            units += _of_call(part.func, part)
            work += traversal.parts(part)
    return units


def _of_call(func: Any, call: Call) -> int:
    if isinstance(call.type, (Array, ListOf)) or any(isinstance(arg.type, Array) for arg in call.args):
        return 0 if func is intrinsics.dim else _CALL
    if func in LONG:
        return _LONG
    return _DIVISION if func in (operator.truediv, operator.pow, operator.floordiv, operator.mod) else 1
