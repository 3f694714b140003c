"""Powers of Python's floats that stay real.

`(-1.0) ** 0.5` is a complex number in Python.  Where all else is real, one that comes about so is found in the results;
among complex numbers it would go unnoticed, with the derivative of a real one.
"""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from typing import Any

from tapegen.ir import rewrite
from tapegen.ir.nodes import Block, Call, Const, Function, Stmt
from tapegen.ir.types import Scalar, is_complex


def meets_complex_numbers(function: Function) -> bool:
    """Whether any value of a program is complex."""
    inside = (var for stmt in rewrite.statements(function.body) for var in stmt.targets)
    return any(is_complex(var.type) for var in (*function.params, *inside))


def with_real_powers(function: Function) -> Function:
    """The same program, in which such a power raises if there are complex numbers."""
    return replace(function, body=_block(function.body)) if meets_complex_numbers(function) else function


def _block(block: Block) -> Block:
    return tuple(_statement(stmt) for stmt in block)


def _statement(stmt: Stmt) -> Stmt:
    stmt = rewrite.map_headers(stmt, lambda part: rewrite.map_expr(part, _real))
    return rewrite.with_blocks(stmt, tuple(_block(block) for block in stmt.blocks))


def _real(node: Any) -> Any:
    if not isinstance(node, Call) or node.func is not operator.pow or node.type != Scalar("float64"):
        return node
    base, exponent = node.args
    if isinstance(exponent, Const) and float(exponent.value).is_integer():  # type: ignore[arg-type]
        return node
    if isinstance(base, Const) and base.value >= 0.0:  # type: ignore[operator]
        return node
    return Call(math.pow, node.args, (), node.type)
