"""Loop-invariant code motion: array values that every iteration would recompute are computed once, before the loop.

`(c * dt / dx) ** 2` inside a time loop costs an array per iteration to record and a chain of adjoints per iteration to
pass on; before the loop it costs one of each.
"""

from __future__ import annotations

import operator
from collections.abc import Set
from typing import Any

import numpy as np

from tapegen.analysis.activity import is_view
from tapegen.analysis.shape_inference import Shapes
from tapegen.analysis.side_effects import Effects
from tapegen.ir import traversal
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, For, Load, Slice, Stmt, Var, While
from tapegen.ir.types import Array, is_floating
from tapegen.rules.registry import rule_of

_OPERATORS: frozenset[Any] = frozenset(
    {operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.neg}
)


def hoist(block: Block, effects: Effects, shapes: Shapes, merges: Set[Var]) -> Block:
    """Move invariant element-wise arithmetic on arrays out of loops.

    Only statements that cannot raise are moved, since the loop may make no iteration.

    Parameters
    ----------
    block : Block
        The body of a lowered function.
    effects : Effects
        What its statements write.
    shapes : Shapes
        The shapes of its arrays.
    merges : set of Var
        Its variables with several values.

    Returns
    -------
    Block
        The same block where nothing moves.
    """

    def change(stmt: Stmt) -> list[Stmt]:
        inner = stmt.blocks
        if not inner:
            return [stmt]
        new = tuple(hoist(part, effects, shapes, merges) for part in inner)
        moved: list[Stmt] = []
        if isinstance(stmt, (For, While)):
            moved, body = _invariant(stmt, new[0], effects, shapes, merges)
            new = (body,)
        return [*moved, traversal.with_blocks(stmt, new)]

    out = tuple([part for stmt in block for part in change(stmt)])
    return out if len(out) != len(block) or any(map(operator.is_not, out, block)) else block


def _invariant(
    loop: For | While, body: Block, effects: Effects, shapes: Shapes, merges: Set[Var]
) -> tuple[list[Stmt], Block]:
    """The statements of a loop body that may be hoisted, and the body without them."""
    inside = tuple(traversal.statements(loop.body))
    varying = {var for stmt in (loop, *inside) for var in stmt.targets}
    written = frozenset().union(*(effects.written_by(stmt) for stmt in inside))
    movable: dict[Var, Assign] = {}
    for stmt in body:
        if not isinstance(stmt, Assign) or len(stmt.targets) != 1 or stmt.targets[0] in merges:
            continue
        (target,) = stmt.targets
        reads = traversal.free_vars(stmt.value)
        if any(var in varying and var not in movable for var in reads):
            continue
        if (_is_slice(stmt.value) and all(effects.roots(var).isdisjoint(written) for var in _bounds(stmt.value))) or (
            _is_arithmetic(stmt.value, shapes)
            and not effects.is_written(target)
            and all(effects.roots(var).isdisjoint(written) for var in reads)
        ):
            movable[target] = stmt
    wanted: set[Var] = set()
    for target, stmt in reversed(movable.items()):
        if target in wanted or not is_view(stmt.value):
            wanted.add(target)
            wanted |= traversal.free_vars(stmt.value)
    moved = [stmt for target, stmt in movable.items() if target in wanted]
    if not moved:
        return [], body
    return list(moved), tuple(stmt for stmt in body if stmt not in moved)


def _is_slice(value: Expr) -> bool:
    """Whether this is a view by slices alone, whose index cannot be out of range."""
    return isinstance(value, Load) and is_view(value) and all(isinstance(item, Slice) for item in value.index)


def _bounds(view: Expr) -> set[Var]:
    """Arrays and lists of which the bounds of slices read elements or the length."""
    loaded = {load.array for load in traversal.loads(view) if load is not view}
    return loaded | traversal.unindexed_reads(view)


def _is_arithmetic(value: Expr, shapes: Shapes) -> bool:
    """Whether this makes a new array of floats element by element, from arrays of one shape and scalars."""
    if not isinstance(value, Call) or value.kwargs or not isinstance(value.type, Array) or not is_floating(value.type):
        return False
    rule = rule_of(value.func)
    elementwise = value.func in _OPERATORS or (
        isinstance(value.func, np.ufunc) and rule is not None and rule.kind == "partials"
    )
    if not elementwise or not all(isinstance(arg, (Var, Const)) for arg in value.args):
        return False
    extents = {shapes.of(arg) for arg in value.args if isinstance(arg, Var) and isinstance(arg.type, Array)}
    return len(extents) == 1
