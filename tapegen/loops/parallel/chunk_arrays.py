"""What the calls that run loops in chunks consist of: arrays, their extents, and ranges of iterations."""

from __future__ import annotations

import functools
import operator

from tapegen.ir import intrinsics
from tapegen.ir.affine import plus, times
from tapegen.ir.nodes import Call, Const, Expr, For, Var
from tapegen.ir.types import INT, Array


def rank_of(var: Var) -> int:
    """The number of axes; 0 of a number."""
    return var.type.rank if isinstance(var.type, Array) else 0


def extent(array: Var, axis: int) -> Expr:
    """The extent of one axis."""
    return Call(intrinsics.dim, (array, Const(axis)), (), INT)


def extents_of(var: Var) -> tuple[Expr, ...]:
    """The extents of all axes."""
    return tuple(extent(var, axis) for axis in range(rank_of(var)))


def size_of(array: Var) -> Expr:
    """The number of elements."""
    one: Expr = Const(1)
    return functools.reduce(times, extents_of(array), one)


def range_of_chunk(loop: For, chunk: Var, chunks: Var, trips: Var) -> tuple[Expr, Expr]:
    """The start and the stop of a chunk of a loop with so many iterations."""
    ends = [Call(operator.floordiv, (times(number, trips), chunks), (), INT) for number in (chunk, plus(chunk, 1))]
    start, stop = (plus(loop.start, times(loop.step, end)) for end in ends)
    return start, stop
