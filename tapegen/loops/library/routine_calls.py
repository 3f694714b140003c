"""Calls of the program's own recursive functions: recursion depth is counted, and arrays are passed in C order.

Compiled code does not detect a stack overflow, and numba compiles a function again for each memory order.  It is a
calling convention, no optimization: callers and routines change together.

The routine of the program::

    def f(x: "f8", n: "i8"):
        if n == 0:
            return 1.0
        return x * f(x, n - 1)

Before::

    def f(x, n):
        if n == 0:
            result = 1.0
        else:
            result = x * ops.f(x, n - 1)
        return result

After::

    def f(x, n, depth):
        if depth == 0:
            raise RecursionError('maximum recursion depth exceeded')
        if n == 0:
            result = 1.0
        else:
            result = x * ops.f(x, n - 1, depth - 1)
        return result
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.ir import traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Block, Call, Const, Expr, Function, If, Raise, Return, Routine, Var
from tapegen.ir.types import BOOL, INT, Array

DEEPEST = 1000
"""Maximal recursion depth: Python's own limit, and far from the end of a stack of 8 MB."""


def lower_routine_calls(function: Function) -> Function:
    """The function with the calling convention of recursive functions, for calls of routines and routines themselves.

    numba's code does not detect a stack overflow, so each routine gets the number of calls that may still follow; and
    it is compiled only once if the memory layout of arrays is the same in each call.
    """
    if not function.inner:
        return traversal.with_body(function, _block(function.body, Const(DEEPEST)))
    names = NameSupply({param.name for param in function.params} | set(_names(function.body)))
    depth = Var(names.fresh("depth"), INT)
    ended = Call(operator.eq, (depth, Const(0)), (), BOOL)
    message = (Const("maximum recursion depth exceeded"),)
    check = If(ended, (Raise(RecursionError, message, function.origin),), (), function.origin)
    *body, last = _block(function.body, Call(operator.sub, (depth, Const(1)), (), INT))
    assert isinstance(last, Return)
    values = tuple(map(_uniform, last.values))
    return replace(function, params=(*function.params, depth), body=(check, *body, replace(last, values=values)))


def _names(block: Block) -> list[str]:
    return [var.name for stmt in traversal.statements(block) for var in stmt.targets]


def _block(block: Block, left: Expr) -> Block:
    def change(node: Any) -> Any:
        if isinstance(node, Call) and isinstance(node.func, Routine) and not node.func.by_chunks:
            return replace(node, args=(*map(_uniform, node.args), _uniform(left)))
        return node

    return _mapped(block, lambda header: traversal.map_expr(header, change))


def _mapped(block: Block, change: Callable[[Any], Any]) -> Block:
    out = []
    for stmt in block:
        if not traversal.calls_routine(stmt):
            out.append(stmt)
            continue
        new = traversal.map_headers(stmt, change)
        out.append(traversal.with_blocks(new, tuple(_mapped(inner, change) for inner in new.blocks)))
    return tuple(out)


def _uniform(expr: Expr) -> Expr:
    """An array in C order; or an integer of which numba sees only the type, since it specializes for constants."""
    if isinstance(expr, Const) and type(expr.value) is int:
        return Call(np.int64, (expr,), (), INT)
    if not isinstance(expr.type, Array) or not expr.type.rank:
        return expr
    return Call(np.ascontiguousarray, (expr,), (), Array(expr.type.dtype, expr.type.rank, "C"))
