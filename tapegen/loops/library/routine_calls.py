"""Calls of the program's own recursive functions: their depth is counted, and arrays are passed in C order.

Compiled code does not notice the end of the stack, and numba compiles a function anew for each memory order.
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
"""Calls inside each other: Python's own limit, and far from the end of a stack of 8 MB."""


def lower_routine_calls(function: Function) -> Function:
    """The function with what its calls of routines, and those that call it, agree upon.

    Code of numba does not notice the end of the stack, so each routine is told how many calls may still follow; and it
    is compiled once only if arrays lie in memory in the same way in each call.
    """
    if not function.inner:
        return replace(function, body=_block(function.body, Const(DEEPEST)))
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
        if isinstance(node, Call) and isinstance(node.func, Routine):
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
    """An array in C order; and an integer of which numba sees the type alone, for it compiles anew for constants."""
    if isinstance(expr, Const) and type(expr.value) is int:
        return Call(np.int64, (expr,), (), INT)
    if not isinstance(expr.type, Array) or not expr.type.rank:
        return expr
    return Call(np.ascontiguousarray, (expr,), (), Array(expr.type.dtype, expr.type.rank, "C"))
