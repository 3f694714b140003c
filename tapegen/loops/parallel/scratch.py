"""Scratch arrays: arrays from before a loop that each iteration overwrites before it reads them.

Array privatization: such an array carries nothing from iteration to iteration, so that each chunk may have its own.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import plus
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, For, Function, If, Stmt, Store, Var, While
from tapegen.ir.types import INT, Array
from tapegen.loops.analysis.block_queries import leaves
from tapegen.loops.analysis.dependence import alias_sets
from tapegen.loops.analysis.liveness import Surroundings

_ALLOCATIONS = frozenset({np.empty, np.zeros})


def is_scratch(function: Function, loop: For, around: Surroundings, array: Var) -> bool:
    """Whether each iteration of a loop could as well have an array of its own.

    Parameters
    ----------
    function : Function
        A program without array statements.
    loop : For
        One of its loops.
    around : Surroundings
        The blocks around the loop.
    array : Var
        An array from before the loop, which is no parameter.
    """
    made = alias_sets(function).own(array)
    if not isinstance(array.type, Array) or not isinstance(made, Assign) or not isinstance(made.value, Call):
        return False
    if made.value.func not in _ALLOCATIONS or array in function.params:
        return False
    scan = _Scan(array, _sizes(function, made.value.args[0]))
    try:
        scan.block(loop.body, overwritten=False)
        return not _is_read_after(scan, around)
    except _Exposed:
        return False


def _sizes(function: Function, shape: Expr) -> Sequence[Expr]:
    """The sizes of an array in terms of what does not change; none where they may."""
    changing = {var for stmt in function.body if stmt.blocks for var in traversal.assigns(stmt)}
    often = [var for stmt in function.body for var in stmt.targets]
    names = traversal.free_vars(shape)
    if any(var in changing or often.count(var) > 1 for var in names):
        return ()
    return traversal.parts(shape) if not isinstance(shape.type, type(INT)) else (shape,)


def _is_read_after(scan: _Scan, around: Surroundings) -> bool:
    for _, rest, loop in around:
        if scan.block(rest, overwritten=False):
            return False
        if loop is not None:
            scan.block(loop.body, overwritten=False)
    return False


class _Exposed(Exception):
    """Elements may be read that were not overwritten before."""


class _Scan:
    """Follows a block to see whether it overwrites an array before it reads of it."""

    def __init__(self, array: Var, sizes: Sequence[Expr]) -> None:
        assert isinstance(array.type, Array)
        self.array, self.sizes, self.rank = array, sizes, array.type.rank

    def block(self, block: Block, *, overwritten: bool) -> bool:
        """Whether the whole array has been overwritten at the end of a block."""
        for stmt in block:
            if overwritten:
                return True
            if self.array in _contents(stmt):
                overwritten = self._statement(stmt)
        return overwritten

    def _statement(self, stmt: Stmt) -> bool:
        if isinstance(stmt, Store) and stmt.array == self.array and not stmt.accumulate:
            if any(self.array in traversal.contents_read(part) for part in (*stmt.index, stmt.value)):
                raise _Exposed
            return stmt.index == ()
        if isinstance(stmt, For) and self._fills((stmt,), ()):
            return True
        if isinstance(stmt, (For, While)):
            if any(self.array in traversal.contents_read(header) for header in stmt.headers):
                raise _Exposed
            self.block(stmt.body, overwritten=False)
            return False
        if isinstance(stmt, If) and self.array not in traversal.contents_read(stmt.test):
            sides = [self.block(side, overwritten=False) for side in stmt.blocks]
            return all(sides)
        raise _Exposed

    def _fills(self, block: Block, counters: tuple[Var, ...]) -> bool:
        """Whether a block stores each element behind an index before it reads of any, and then reads only these."""
        concerned = [stmt for stmt in block if self.array in _contents(stmt)]
        if not concerned or leaves(block):
            return False
        first, *others = concerned
        if counters and not all(_is_behind(stmt, self.array, counters) for stmt in others):
            return False
        if len(counters) == self.rank:
            plain = isinstance(first, Store) and first.array == self.array and not first.accumulate
            return plain and first.index == counters and self.array not in traversal.contents_read(first.value)  # type: ignore[union-attr]
        axis = len(counters)
        known = [Call(intrinsics.dim, (self.array, Const(axis)), (), INT), *self.sizes[axis : axis + 1]]
        if not isinstance(first, For) or not any(_runs_over(first, size) for size in known):
            return False
        return (bool(counters) or len(concerned) == 1) and self._fills(first.body, (*counters, first.target))


def _runs_over(loop: For, size: Expr) -> bool:
    """Whether a counter takes each value from 0 to below a size."""
    bounds = {size}
    if isinstance(size, Call) and size.func is max and Const(0) in size.args:
        bounds.update(arg for arg in size.args if arg != Const(0))
    if loop.step == Const(1):
        return loop.start == Const(0) and loop.stop in bounds
    return loop.step == Const(-1) and loop.stop == Const(-1) and plus(loop.start, 1) in bounds


def _is_behind(stmt: Stmt, array: Var, counters: tuple[Var, ...]) -> bool:
    """Whether a statement accesses an array only behind an index."""
    if not traversal.assigns(stmt).isdisjoint(counters):
        return False
    for inner in traversal.statements((stmt,)):
        if isinstance(inner, Store) and inner.array == array and inner.index[: len(counters)] != counters:
            return False
        for header in traversal.value_headers(inner):
            loads = [load for load in traversal.loads(header) if load.array == array]
            if any(load.index[: len(counters)] != counters for load in loads):
                return False
            if array in traversal.whole_reads(header):
                return False
    return True


def _contents(stmt: Stmt) -> Set[Var]:
    """Arrays whose elements a statement reads or writes, nested statements included."""
    found: set[Var] = set()
    for inner in traversal.statements((stmt,)):
        found.update(*map(traversal.contents_read, traversal.value_headers(inner)))
        if isinstance(inner, Store):
            found.add(inner.array)
    return found
