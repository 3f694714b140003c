"""Specialization: short axes of parameters have the sizes of the first call, which the program tests when it begins.

Legal where other code runs in place of a program that raises `OTHER_SIZE`.  It pays because LLVM unrolls loops over a
known number of coordinates, and then takes vector instructions along the loop around them.  It comes last: results
must not depend on whether sizes are known, and passes choose by them which functions take vector instructions.

Before::

    def f(x: "f8[:]", p: "f8[:, :]"):
        for j in range(x.shape[0]):
            total = 0.0
            for k in range(p.shape[1]):
                total += p[j, k] * p[j, k]
            x[j] = total
        return x

After::

    def f(x, p):
        if p.shape[1] != 3:
            raise NotImplementedError("a short axis has another size")
        for j in range(x.shape[0]):
            total = 0.0
            for k in range(3):
                total += p[j, k] * p[j, k]
            x[j] = total
        return x
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Block, Call, Const, Expr, Function, If, Raise, Stmt
from tapegen.ir.types import BOOL
from tapegen.loops.analysis.symbolic_bounds import dim

OTHER_SIZE = "a short axis has another size"
"""The message of the `NotImplementedError`."""

ShortAxes = Sequence[tuple[int, int, int]]
"""Axes of parameters: the position of the parameter, the axis, and its size."""


def specialize_short_axes(function: Function, *, short_axes: ShortAxes) -> Function:
    """The program for parameters of which some axes have known sizes.

    Parameters
    ----------
    function : Function
        The program.
    short_axes : sequence
        The axes, and their sizes.
    """
    assigned = traversal.assigned_in(*function.body)
    axes = [(function.params[position], axis, size) for position, axis, size in short_axes]
    known: dict[Expr, Expr] = {dim(var, axis): Const(size) for var, axis, size in axes if var not in assigned}
    body = _block(function.body, known)
    if body == function.body:
        return function
    checks = [
        If(
            Call(operator.ne, (size, number), (), BOOL),
            (Raise(NotImplementedError, (Const(OTHER_SIZE),), None),),
            (),
            None,
        )
        for size, number in known.items()
    ]
    return traversal.with_body(function, (*checks, *body))


def _block(block: Block, known: dict[Expr, Expr]) -> Block:
    def sized(part: Any) -> Any:
        return known.get(part, part) if isinstance(part, Call) else part

    def changed(header: Any) -> Any:
        return traversal.map_expr(header, sized) if intrinsics.dim in traversal.callees(header) else header

    out: list[Stmt] = []
    for stmt in block:
        stmt = traversal.map_headers(stmt, changed)
        out.append(traversal.with_blocks(stmt, tuple([_block(part, known) for part in stmt.blocks])))
    return tuple(out)
