"""If-conversion of guarded division: a selection between divisors instead of a branch between quotients.

Legal since `x / 1.0` is the same zero that the guard gives (or -0.0).  It pays in loops: LLVM makes a branch of a
choice between quotients, which keeps iterations from overlapping, and a select instruction of one between divisors.

Before::

    def f(x: "f8[:]", y: "f8[:]"):
        for i in range(x.shape[0]):
            t = x[i]
            y[i] = t / y[i] if t != 0.0 else 0.0
        return y

After::

    def f(x, y):
        for i in range(x.shape[0]):
            t = x[i]
            y[i] = t / (1.0 if t == 0.0 else y[i])
        return y
"""

from __future__ import annotations

import operator
from typing import Any

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import is_real
from tapegen.ir.nodes import Call, Const, For, Function, Stmt, Var, While
from tapegen.ir.types import BOOL
from tapegen.loops.legalize.precision import convert, dtype_of


def if_convert_division(function: Function) -> Function:
    """The same program with selections between divisors in loops."""
    return traversal.with_body(function, tuple(map(_outside, function.body)))


_DIVIDED: frozenset[Any] = frozenset({intrinsics.ifelse, operator.truediv})


def _outside(stmt: Stmt) -> Stmt:
    if not traversal.calls(stmt) >= _DIVIDED:
        return stmt
    blocks = tuple(stmt.blocks)
    inside = _inside if isinstance(stmt, (For, While)) else _outside
    return traversal.with_blocks(stmt, tuple(tuple(map(inside, block)) for block in blocks))


def _inside(stmt: Stmt) -> Stmt:
    if not traversal.calls(stmt) >= _DIVIDED:
        return stmt
    stmt = traversal.map_headers(stmt, lambda part: traversal.map_expr(part, _chosen))
    return traversal.with_blocks(stmt, tuple(tuple(map(_inside, block)) for block in stmt.blocks))


def _chosen(expr: Any) -> Any:
    match expr:
        case Call(
            intrinsics.ifelse,
            (Call(operator.ne, (Var() as number, Const(0.0) as zero)), Call(operator.truediv, (x, y)), Const(0.0)),
        ) if x == number and is_real(y) and expr.type == y.type:
            divisor = Call(
                intrinsics.ifelse,
                (Call(operator.eq, (x, zero), (), BOOL), convert(Const(1.0), dtype_of(y)), y),
                (),
                y.type,
            )
            return Call(operator.truediv, (x, divisor), (), expr.type)
    return expr
