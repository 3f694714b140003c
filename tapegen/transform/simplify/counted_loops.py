"""Counted loops: `while` loops that count to a bound are `for` loops.

The number of iterations is then known before the loop: tapes have their final size, and loops take vector instructions.
Legal where the last statement of the body alone changes the counter, by a constant, no iteration changes the bound or
leaves the loop, and nothing else reads the counter.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.affine import is_int
from tapegen.ir.nodes import Assign, Block, Break, Call, Const, Continue, Expr, For, Function, Return, Stmt, Var, While

_UPWARDS: dict[Any, int] = {operator.lt: 0, operator.le: 1}
_DOWNWARDS: dict[Any, int] = {operator.gt: 0, operator.ge: -1}
_SWAPPED: dict[Any, Any] = {
    operator.lt: operator.gt,
    operator.le: operator.ge,
    operator.gt: operator.lt,
    operator.ge: operator.le,
}
_SIZES = frozenset({operator.add, operator.sub, operator.mul, intrinsics.dim, np.size})


def counted(function: Function) -> Function:
    """The same program with counted loops."""
    if not any(isinstance(stmt, While) for stmt in traversal.statements(function.body)):
        return function
    body = _block(function.body, function)
    return function if body is function.body else traversal.with_body(function, body)


def _block(block: Block, function: Function) -> Block:
    out: list[Stmt] = []
    changed = False
    for stmt in block:
        inner = tuple([_block(part, function) for part in stmt.blocks])
        new = stmt
        if any(map(operator.is_not, inner, stmt.blocks)):
            new = traversal.with_blocks(stmt, inner)
        if isinstance(new, While) and (found := _counted(new, out, function)) is not None:
            place, new = found
            del out[place]
        changed = changed or new is not stmt
        out.append(new)
    return tuple(out) if changed else block


def _counted(loop: While, before: list[Stmt], function: Function) -> tuple[int, For] | None:
    """The loop with a counter, and the position of the statement before it that the counter begins with."""
    match loop.test, loop.body:
        case Call(test, (Var() as counter, bound)), (
            _,
            *_,
            Assign((target,), Call(step, (read, Const(int() as by)))),
        ) if test in _SWAPPED and counter == target == read and step in (operator.add, operator.sub):
            pass
        case Call(test, (bound, Var() as counter)), (
            _,
            *_,
            Assign((target,), Call(step, (read, Const(int() as by)))),
        ) if test in _SWAPPED and counter == target == read and step in (operator.add, operator.sub):
            test = _SWAPPED[test]
        case _:
            return None
    by = by if step is operator.add else -by
    beyond = (_UPWARDS if by > 0 else _DOWNWARDS).get(test)
    if beyond is None or by == 0 or not is_int(counter) or not is_size(bound) or exits_early(loop.body):
        return None
    assigned = [var for stmt in traversal.statements(loop.body) for var in stmt.targets]
    if assigned.count(counter) != 1 or not traversal.free_vars(bound).isdisjoint(assigned):
        return None
    for place in range(len(before) - 1, -1, -1):
        first = before[place]
        if counter in traversal.assigns(first):
            break
    else:
        return None
    if not isinstance(first, Assign) or len(first.targets) != 1 or not is_size(first.value):
        return None
    later = traversal.assigned_in(*before[place + 1 :])
    if not traversal.free_vars(first.value).isdisjoint(later | {counter}):
        return None
    if _mentions(function.body, counter) != _mentions((first, loop), counter) or counter in function.params:
        return None
    stop = builders.int_add(bound, Const(beyond))
    return place, For(counter, first.value, stop, Const(by), loop.body[:-1], loop.origin)


def is_size(expr: Expr) -> bool:
    """Whether this is made of integers and sizes by arithmetic."""
    if isinstance(expr, Call):
        whole = expr.func in (intrinsics.dim, np.size)
        return is_int(expr) and expr.func in _SIZES and (whole or all(map(is_size, expr.args)))
    return isinstance(expr, (Var, Const)) and is_int(expr)


def exits_early(block: Block) -> bool:
    """Whether an iteration may end early."""
    if any(isinstance(stmt, Return) for stmt in traversal.statements(block)):
        return True
    for stmt in block:
        if isinstance(stmt, (Break, Continue)):
            return True
        if not isinstance(stmt, (For, While)) and any(map(exits_early, stmt.blocks)):
            return True
    return False


def _mentions(block: Block, var: Var) -> int:
    """The number of statements that read or assign a variable."""
    return sum(
        var in stmt.targets or any(var in traversal.free_vars(header) for header in stmt.headers)
        for stmt in traversal.statements(block)
    )
