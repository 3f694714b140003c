"""Scratch arrays: arrays from before a loop that carry nothing from iteration to iteration.

Array privatization: each chunk may have such an array of its own.  Either each iteration overwrites it before it reads
of it, or it is full of zeros between iterations, as the cotangent of an array that is overwritten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from typing import Any

import numpy as np

from tapegen.analysis.memory_access import written as written_by
from tapegen.ir import traversal
from tapegen.ir.affine import Affine, plus
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, For, Function, If, Stmt, Store, Var, While
from tapegen.ir.types import Array
from tapegen.loops.analysis.block_queries import escapes, leaves
from tapegen.loops.analysis.dependence import alias_sets
from tapegen.loops.analysis.loop_liveness import Surroundings
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds

_ALLOCATIONS = frozenset({np.empty, np.zeros})


def own_array(function: Function, loop: For, around: Surroundings, facts: SymbolicBounds, array: Var) -> Any:
    """How each chunk could make an array of its own: `np.empty`, `np.zeros`, or None.

    Parameters
    ----------
    function : Function
        A program without array statements.
    loop : For
        One of its loops.
    around : Surroundings
        The blocks around the loop.
    facts : SymbolicBounds
        The facts in any of its iterations.
    array : Var
        An array from before the loop.
    """
    made = alias_sets(function).own(array)
    if not isinstance(array.type, Array) or not isinstance(made, Assign) or not isinstance(made.value, Call):
        return None
    if made.value.func not in _ALLOCATIONS or array in function.params:
        return None
    extents = _Extents(function, facts, array)
    if _Zeros(array, extents).is_clean_between(loop, around, made):
        return np.zeros
    scan = _Scan(array, extents)
    try:
        scan.block(loop.body, overwritten=False)
        return None if _is_read_after(scan, around) else np.empty
    except _Exposed:
        return None


class _Extents:
    """The extents of an array, and which loops run over them."""

    def __init__(self, function: Function, facts: SymbolicBounds, array: Var) -> None:
        assert isinstance(array.type, Array)
        self.facts, self.rank = facts, array.type.rank
        self.often = Counter(var for stmt in function.body for var in stmt.targets)
        self.changing = {var for stmt in function.body if stmt.blocks for var in traversal.assigns(stmt)}
        self.forms = [self._known(extent.form) for extent in facts.extents(array)]

    def _known(self, form: Affine[Expr]) -> list[Affine[Expr]]:
        """The forms of one extent: for `max(n, 0)` a loop to n as well, which runs over as many."""
        atoms = form.atoms
        if len(atoms) == 1 and form == Affine.atom(atoms[0]) and isinstance(atoms[0], Call) and atoms[0].func is max:
            return [form, *(self.facts.form(arg) for arg in atoms[0].args if Const(0) in atoms[0].args)]
        return [form]

    def runs_over(self, loop: For, axis: int) -> bool:
        """Whether a counter takes each value from 0 to below an extent."""
        if axis >= self.rank:
            return False
        start, stop = loop.start, loop.stop
        if loop.step == Const(-1):
            start, stop = plus(stop, 1), plus(start, 1)
        elif loop.step != Const(1):
            return False
        steady = all(self.often[var] <= 1 and var not in self.changing for var in traversal.free_vars(stop))
        return (
            start == Const(0) and steady and any(self.facts.equal(self.facts.form(stop), f) for f in self.forms[axis])
        )


def _is_read_after(scan: _Scan, around: Surroundings) -> bool:
    for _, rest, loop in around:
        if scan.block(rest, overwritten=False):
            return False
        if loop is not None:
            scan.block(loop.body, overwritten=False)
    return False


class _Zeros:
    """Follows blocks to see whether an array is full of zeros."""

    def __init__(self, array: Var, extents: _Extents) -> None:
        self.array, self.extents, self.rank = array, extents, extents.rank

    def is_clean_between(self, loop: For, around: Surroundings, made: Assign) -> bool:
        """Whether it is full of zeros before a loop, and after each iteration of it."""
        assert isinstance(made.value, Call)
        if made.value.func is not np.zeros or not self.block(loop.body, clean=True):
            return False
        levels = list(around)
        while levels and made not in levels[-1][0]:
            levels.pop()
        clean = bool(levels)
        for k, (before, _, outer) in enumerate(reversed(levels)):
            if k and outer is not None and not self.block(outer.body, clean=True):
                return False
            clean = self.block(before[before.index(made) + 1 :] if not k else before, clean=clean)
        return clean

    def block(self, block: Block, *, clean: bool) -> bool:
        """Whether it is full of zeros at the end of a block."""
        for stmt in block:
            if self._is_stored(stmt):
                clean = self._after(stmt, clean=clean)
        return clean

    def _is_stored(self, stmt: Stmt) -> bool:
        return any(self.array in written_by(inner) for inner in traversal.statements((stmt,)))

    def _after(self, stmt: Stmt, *, clean: bool) -> bool:
        if isinstance(stmt, For) and self._clears((stmt,), ()):
            return True
        if isinstance(stmt, (For, While)):
            return clean and self.block(stmt.body, clean=True)
        if isinstance(stmt, If):
            sides = [escapes(side) or self.block(side, clean=clean) for side in stmt.blocks]
            return all(sides) and not leaves((stmt,))
        return isinstance(stmt, Store) and stmt.index == () and not stmt.accumulate and stmt.value == _ZERO

    def _clears(self, block: Block, counters: tuple[Var, ...]) -> bool:
        """Whether a block leaves zeros behind an index, and stores nowhere else."""
        stores = [stmt for stmt in block if self._is_stored(stmt)]
        if not stores or leaves(block):
            return False
        if len(counters) == self.rank:
            last = stores[-1]
            own = all(isinstance(each, Store) and each.index == counters for each in stores)
            return own and isinstance(last, Store) and not last.accumulate and last.value == _ZERO
        first, *others = stores
        if others or not isinstance(first, For) or not self.extents.runs_over(first, len(counters)):
            return False
        return self._clears(first.body, (*counters, first.target))


_ZERO = Const(0.0)


class _Exposed(Exception):
    """Elements may be read that were not overwritten before."""


class _Scan:
    """Follows a block to see whether it overwrites an array before it reads of it."""

    def __init__(self, array: Var, extents: _Extents) -> None:
        self.array, self.extents, self.rank = array, extents, extents.rank

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
        if not isinstance(first, For) or not self.extents.runs_over(first, len(counters)):
            return False
        return (bool(counters) or len(concerned) == 1) and self._fills(first.body, (*counters, first.target))


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
            if array in traversal.unindexed_reads(header):
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
