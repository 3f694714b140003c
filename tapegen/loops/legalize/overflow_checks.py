"""Overflow checks: operations on Python integers that may need more than 64 bits.

Python's integers grow, those of compiled code wrap around.  Value ranges exclude that for some operations; the
others are marked by `exact`, for which scalarization emits a check.

Before::

    def f(n: "i8"):
        m = n * n * n
        return m

After::

    def f(n):
        m = exact(exact(n * n) * n)
        return m
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tapegen.analysis.integer_overflow import overflowing
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Block, Call, For, Function, Store, Tuple


def insert_overflow_checks(function: Function, *, wide: bool) -> Function:
    """The function with `ops.exact` around each operation whose result may not have 64 bits."""
    calls = overflowing(function, wide=wide)
    return traversal.with_body(function, _block(function.body, calls)) if calls else function


def _block(block: Block, calls: frozenset[Call]) -> Block:
    def change(node: Any) -> Any:
        return _number(node, calls)

    out = []
    for stmt in block:
        if isinstance(stmt, Store):
            stmt = replace(stmt, value=change(stmt.value))
        elif not isinstance(stmt, For):  # the bounds of a loop are no scalars
            stmt = traversal.map_headers(stmt, change)
        out.append(traversal.with_blocks(stmt, tuple(_block(inner, calls) for inner in stmt.blocks)))
    return tuple(out)


def _number(node: Any, calls: frozenset[Call]) -> Any:
    """Nothing is marked inside of an index."""
    match node:
        case Tuple(items):
            return Tuple(tuple(_number(item, calls) for item in items))
        case Call(func, args, kwargs, type_):
            new = Call(
                func, tuple(_number(a, calls) for a in args), tuple((k, _number(a, calls)) for k, a in kwargs), type_
            )
            return Call(intrinsics.exact, (new,), (), type_) if node in calls else new
    return node
