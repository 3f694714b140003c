"""Real-domain checks: powers of Python's floats, roots and logarithms of real matrices must stay real.

`(-1.0) ** 0.5` is a complex number in Python.  Where all else is real, such a value is detected in the results;
among complex numbers it would go undetected, with the derivative of a real one.  A matrix would go undetected anywhere:
the program may continue with its real part.
"""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.ir import traversal
from tapegen.ir.nodes import Assign, Block, Call, Const, Function, If, Raise, Stmt
from tapegen.ir.printer import callable_text
from tapegen.ir.types import BOOL, Scalar, is_complex
from tapegen.rules.external_functions import may_turn_complex

TURNS_COMPLEX = ", which is complex"
"""How the message of the `ValueError` ends."""


def involves_complex_numbers(function: Function) -> bool:
    """Whether any value of a program is complex."""
    inside = (var for stmt in traversal.statements(function.body) for var in stmt.targets)
    return any(is_complex(var.type) for var in (*function.params, *inside))


def with_real_values(function: Function) -> Function:
    """The same program with checks that raise where a scalar or a matrix that is typed as real becomes complex.

    Powers are checked where there are complex numbers; elsewhere the results show them.
    """
    return replace(function, body=_block(function.body, powers=involves_complex_numbers(function)))


def _block(block: Block, *, powers: bool) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        if powers:
            stmt = traversal.map_headers(stmt, lambda part: traversal.map_expr(part, _real))
        inner = tuple(_block(part, powers=powers) for part in stmt.blocks)
        out.append(traversal.with_blocks(stmt, inner) if inner else stmt)
        if isinstance(stmt, Assign) and isinstance(stmt.value, Call) and stmt.value.func in may_turn_complex():
            (result,) = stmt.targets
            if not is_complex(result.type):
                message = Const(f"{callable_text(stmt.value.func)} of a real matrix{TURNS_COMPLEX}")
                is_turned = Call(np.iscomplexobj, (result,), (), BOOL)
                out.append(If(is_turned, (Raise(ValueError, (message,), stmt.origin),), (), stmt.origin))
    return tuple(out)


def _real(node: Any) -> Any:
    if not isinstance(node, Call) or node.func is not operator.pow or node.type != Scalar("float64"):
        return node
    base, exponent = node.args
    if isinstance(exponent, Const) and float(exponent.value).is_integer():  # type: ignore[arg-type]
        return node
    if isinstance(base, Const) and base.value >= 0.0:  # type: ignore[operator]
        return node
    return Call(math.pow, node.args, (), node.type)
