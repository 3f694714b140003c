"""Loop interchange of perfect nests: inner loops run along the axis whose elements are adjacent in memory.

Legal where no dependence is reversed: no iteration accesses an element that another one writes, where a later iteration
of the outer loop and an earlier one of the inner loop change their order.  Additions of a backward sweep to the same
element may change their order.  Scalars of the outer loop are computed in the inner one.  It pays where fewer accesses
have a stride then; each element receives the same operations in the same order otherwise, so rounding is unchanged.
Nests with other statements around the inner loop are distributed (`imperfect_interchange`).

Before::

    def f(a: "f8[:, :]", x: "f8[:]", z: "f8[:]", n: "i8", m: "i8"):
        for j in range(m):
            t = x[j]
            for i in range(n):
                z[i] += a[i, j] * t
        return z

After::

    def f(a, x, z, n, m):
        for i in range(n):
            for j in range(m):
                t = x[j]
                z[i] += a[i, j] * t
        return z
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from tapegen.ir import traversal
from tapegen.ir.affine import Affine, linear
from tapegen.ir.nodes import Assign, Comment, Const, Expr, For, Function, Stmt, Store, Var, While
from tapegen.ir.types import Array
from tapegen.loops.analysis.dependence import Access, LoopNest, in_loops
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.iteration_order import IterationOrderPass, integers_of
from tapegen.loops.analysis.loop_visitor import never_equal
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds
from tapegen.loops.analysis.trip_counts import largest_trip_count
from tapegen.loops.locality.packing_buffers import has_matrices
from tapegen.loops.vectorize.strip_mining import LONG

_FEW = 8
"""Iterations that fit into few cache lines in any order."""
_LINE = 8
"""Elements of a cache line: what an access with a stride costs, compared with one to adjacent elements."""


def interchange_loops(function: Function) -> Function:
    """The same program with perfect nests of two loops in the order of the elements in memory."""
    if not has_matrices(function):
        return function
    return traversal.with_body(function, _Interchange(function).block(function.body))


class _Interchange(IterationOrderPass):
    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        return [nest.stmt]

    def replaced(self, stmt: For | While, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loop, interchanged with the one in it where that is legal and pays off."""
        nest = _perfect(stmt)
        if nest is None or not _pays(nest) or not self._is_legal(nest, outside.facts):
            return [traversal.with_blocks(stmt, (self.block(stmt.body),))]
        outer, inner = nest.loops
        return [replace(inner, body=(replace(outer, body=nest.body),))]

    def _is_legal(self, nest: LoopNest, facts: SymbolicBounds) -> bool:
        """Whether no iteration depends on one that comes after it in the new order."""
        if nest.checks or not all(map(self.is_stepwise, nest.loops)):
            return False
        if nest.first_read & nest.assigned or nest.assigned & self.leaving:
            return False
        written = {self.memory.group(access.array) for access in nest.accesses if access.writes}
        fixed = {self.memory.group(load.array) for stmt in _front(nest) for load in traversal.loads(stmt.value)}
        if fixed & written:
            return False
        free = self._free_sums(nest)
        writes = [access for access in nest.accesses if access.writes]
        return not any(
            self._is_reversed(nest, one, other, facts)
            for write, access in itertools.product(writes, nest.accesses)
            if self.memory.group(write.array) == self.memory.group(access.array)
            and not (access.writes and self.memory.group(write.array) in free)
            for one, other in ((write, access), (access, write))
        )

    def _free_sums(self, nest: LoopNest) -> set[Var]:
        """The alias sets into which the nest only adds, in any order."""
        if not self.backward:
            return set()
        stored = [(self.memory.group(stmt.array), stmt.accumulate) for stmt in nest.body if isinstance(stmt, Store)]
        return {group for group, _ in stored} - {group for group, adds in stored if not adds} - self.deciding

    def _is_reversed(self, nest: LoopNest, first: Access, second: Access, facts: SymbolicBounds) -> bool:
        """Whether an iteration may access an element before another one does, and after it in the new order."""
        if first.array != second.array:
            return True
        made, varying = integers_of(nest), {*nest.counters, *nest.assigned}
        order: list[Affine] = []
        names: list[dict[Var, Expr]] = [
            {var: Var(f"?{var.name}_{label}", var.type) for var in varying} for label in ("first", "second")
        ]
        for loop, direction in zip(nest.loops, (1, -1), strict=True):
            upward = loop.step == Const(1)
            begin, end = facts.form(loop.start), facts.form(loop.stop)
            ours = [Affine.atom(each[loop.target]) for each in names]
            order.append((ours[1] - ours[0]) * (direction if upward else -direction) - 1)
            for one in ours:
                order += (one - begin, end - 1 - one) if upward else (begin - one, one - end - 1)
        indices = [
            tuple(traversal.substitute(traversal.substitute(item, made), each) for item in access.index)
            for access, each in zip((first, second), names, strict=True)
        ]
        with facts.supposing(*order):
            return not never_equal(indices[0], indices[1], facts)


def _perfect(outer: Stmt) -> LoopNest | None:
    """Two loops around assignments, among them scalars that the outer loop computes before the inner one."""
    if not isinstance(outer, For) or not outer.body or not isinstance(outer.body[-1], For):
        return None
    inner = outer.body[-1]
    nest = in_loops((outer, inner), (*outer.body[:-1], *inner.body))
    if nest is None or inner.target == outer.target:
        return None
    varying = {*nest.counters, *nest.assigned}
    ends = (outer.start, outer.stop, inner.start, inner.stop)  # how often these are computed is another after it
    if any(traversal.loads(end) or traversal.free_vars(end) & varying for end in ends):
        return None
    if not all(isinstance(stmt, (Assign, Comment, For)) for stmt in outer.body):
        return None
    assignments = Counter(target for stmt in nest.body for target in stmt.targets)
    if any(assignments[stmt.targets[0]] > 1 or not LONG.isdisjoint(traversal.calls(stmt)) for stmt in _front(nest)):
        return None  # it has another value in later iterations of the inner loop, or takes long to compute
    return nest


def _front(nest: LoopNest) -> list[Assign]:
    """The scalars that the outer loop computes."""
    outer, _ = nest.loops
    return [stmt for stmt in outer.body if isinstance(stmt, Assign)]


def _pays(nest: LoopNest) -> bool:
    """Whether the inner loop has more accesses with a stride than the outer one would have."""
    outer, inner = nest.loops
    if min(largest_trip_count(outer), largest_trip_count(inner)) < _FEW:
        return False
    made = integers_of(nest)
    return _cost(nest, outer.target, made) < _cost(nest, inner.target, made)


def _cost(nest: LoopNest, counter: Var, made: Mapping[Var, Expr]) -> int:
    """What the accesses cost if consecutive iterations are those of a counter."""
    total = 0
    for array, index in {(access.array, access.index) for access in nest.accesses}:
        items = [traversal.substitute(item, made) for item in index]
        moving = [axis for axis, item in enumerate(items) if counter in traversal.free_vars(item)]
        if moving:
            total += 1 if _is_adjacent(array, items, moving, counter) else _LINE
    return total


def _is_adjacent(array: Var, items: list[Expr], moving: list[int], counter: Var) -> bool:
    """Whether consecutive iterations access adjacent elements."""
    assert isinstance(array.type, Array)
    contiguous = {"C": len(items) - 1, "F": 0}.get(array.type.layout)
    return moving == [contiguous] and abs(linear(items[moving[0]]).coefficient(counter)) == 1
