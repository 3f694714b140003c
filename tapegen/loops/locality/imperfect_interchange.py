"""Interchange of imperfect nests, with distribution and scalar expansion: inner loops run along rows, not columns.

`for k ...: for i ...: a_bar[i, k] += ...` is a strided access for each `k`, as in adjoints of products with columns.
Legal where each iteration of the outer loop writes only elements at its own position of an axis: iterations are then
independent and may be interleaved.  The statements around the inner loops get loops of their own, and scalars that are
live across parts become rows.  Each iteration does the same operations in the same order, so rounding is unchanged.
It pays where there are enough iterations for the cost of the rows.

Before::

    def f(a: "f8[:, :]", x: "f8[:, :]", a_bar: "f8[:, :]", n: "i8", m: "i8"):
        for k in range(m):
            s = 0.0
            for i in range(n):
                s = s + a[i, k] * x[i, k]
            for i in range(n):
                a_bar[i, k] += s
        return a_bar

After::

    def f(a, x, a_bar, n, m):
        s_row = np.empty(x.shape[1])
        if m >= 8 and m <= x.shape[1]:
            for k in range(m):
                s_row[k] = 0.0
            for i in range(n):
                for k in range(m):
                    s_row[k] += a[i, k] * x[i, k]
            for i in range(n):
                for k in range(m):
                    a_bar[i, k] += s_row[k]
        else:
            for k in range(m):
                s = 0.0
                for i in range(n):
                    s += a[i, k] * x[i, k]
                for i in range(n):
                    a_bar[i, k] += s
        return a_bar
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import is_real, plus
from tapegen.ir.nodes import Assign, Call, Comment, Const, Expr, For, Function, If, Load, Stmt, Store, Var
from tapegen.ir.types import BOOL, Array
from tapegen.loops.analysis.block_queries import read_after_loops
from tapegen.loops.analysis.dependence import LoopNest, in_loops
from tapegen.loops.analysis.symbolic_bounds import dim
from tapegen.loops.analysis.trip_counts import largest_trip_count
from tapegen.loops.locality.packing_buffers import PackingPass, has_matrices

_FEW = 8  # iterations that take less time than creating the rows
_ROWS = 8  # maximal number of scalars of an iteration that are expanded


def interchange_imperfect_nests(function: Function) -> Function:
    """The same program with interchanged loops where independent iterations access columns with a stride."""
    return (
        traversal.with_body(function, _ImperfectInterchange(function).whole()) if has_matrices(function) else function
    )


@dataclass(frozen=True)
class _Interchange:
    """A loop with independent iterations.

    Attributes
    ----------
    loop : For
        The loop.
    parts : tuple of LoopNest
        The parts of its body: inner loops, and the statements between them as if each were alone in the loop.
    invariant : frozenset of Var
        Scalars that are the same in every iteration.
    expanded : frozenset of Var
        Scalars that are live from one part to the next, or from iteration to iteration of an inner loop.
    array : Var
        An array whose last axis is at least as long as the trip count.
    """

    loop: For
    parts: tuple[LoopNest, ...]
    invariant: frozenset[Var]
    expanded: frozenset[Var]
    array: Var

    @property
    def count(self) -> Expr:
        """The trip count, if the loop runs."""
        return self.loop.stop if self.loop.step == Const(1) else plus(self.loop.start, 1)

    def is_inner(self, part: LoopNest) -> bool:
        """Whether a part is a loop."""
        return part.loops[0] is not self.loop


class _ImperfectInterchange(PackingPass):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.lasting = read_after_loops(function.body)
        self.reads = Counter(var for stmt in function.body for var in traversal.occurring(stmt))

    def loop(self, loop: For) -> list[Stmt]:
        """A loop; a versioned one with interleaved iterations where there may be more than a few."""
        found = self._interchange(loop)
        if found is None:
            return [traversal.with_blocks(loop, (self.block(loop.body),))]
        assert isinstance(found.array.type, Array)
        last = found.array.type.rank - 1
        numbers = sorted(found.expanded, key=lambda var: var.name)
        rows = {
            number: self.buffer(f"{number.name}_row", number.type.dtype, found.array, last)  # type: ignore[union-attr]
            for number in numbers
        }
        size = dim(found.array, last)  # the length of the rows; an inner loop may have had no iteration
        many = Call(operator.ge, (found.count, Const(_FEW)), (), BOOL)
        fits = Call(operator.le, (found.count, size), (), BOOL)
        test = Call(intrinsics.and_, (many, fits), (), BOOL)
        return [If(test, tuple(_interchanged(found, rows)), (loop,), loop.origin)]

    def _interchange(self, loop: For) -> _Interchange | None:
        """The description of a loop whose iterations are independent and should be interleaved."""
        first, step = (loop.start, loop.step) if loop.step == Const(1) else (plus(loop.stop, 1), loop.step)
        if first != Const(0) or step not in (Const(1), Const(-1)) or largest_trip_count(loop) < _FEW:
            return None
        parts = _parts(loop)
        inner = [part for part in parts if part.loops[0] is not loop]
        if not inner or not self._is_closed(loop, parts):
            return None
        invariant = _invariant(loop, parts)
        varying = {loop.target, *traversal.assigned_in(*loop.body)} - invariant
        ends = [end for part in inner for end in (part.loops[0].start, part.loops[0].stop, part.loops[0].step)]
        if any(traversal.loads(end) or traversal.free_vars(end) & varying for end in ends):
            return None
        expanded = frozenset(_live_across_parts(parts) - invariant)
        array = _strided_array(loop, inner)
        if array is None or len(expanded) > _ROWS or not all(map(is_real, expanded)):
            return None
        return _Interchange(loop, parts, invariant, expanded, array) if self._are_independent(loop, parts) else None

    def _is_closed(self, loop: For, parts: tuple[LoopNest, ...]) -> bool:
        """Whether no scalar is carried from iteration to iteration, or out of the loop."""
        assigned = traversal.assigned_in(*loop.body)
        bounds = (loop.start, loop.stop)
        if loop.target in self.lasting or any(
            traversal.loads(end) or traversal.free_vars(end) & assigned for end in bounds
        ):
            return False
        given: set[Var] = {loop.target}
        for part in parts:
            (around,) = part.loops
            read = part.first_read
            if around is not loop:
                if part.checks or around.target in self.lasting or around.target in given:
                    return False
                read |= traversal.reads(replace(around, body=()))
            if read & assigned - given:
                return False
            given |= part.assigned if around is loop else set()  # a loop may have no iteration
        here = Counter(traversal.occurring(loop))
        counters = {part.loops[0].target for part in parts}
        if counters & {var for part in parts for var in part.assigned}:
            return False
        return all(here[var] == self.reads[var] for var in assigned - counters)

    def _are_independent(self, loop: For, parts: tuple[LoopNest, ...]) -> bool:
        """Whether every access of what the loop writes has the iteration's own position on the last axis."""
        accesses = [access for part in parts for access in part.accesses]
        written = {self.memory.group(access.array): access.array for access in accesses if access.writes}
        checks = [stmt for part in parts for stmt in part.body if isinstance(stmt, If)]
        if len(checks) > 1 or (checks and not all(map(self.memory.own, written.values()))):
            return False  # another error might come first, or the writes of an iteration outlive a later error
        return all(
            access.array == written[group] and access.index[-1:] == (loop.target,)
            for access in accesses
            if (group := self.memory.group(access.array)) in written
        )


def _parts(loop: For) -> tuple[LoopNest, ...]:
    """The parts of a body; empty where it does more than assign scalars and elements in loops of depth one."""
    found: list[LoopNest] = []
    between: list[Stmt] = []
    for stmt in (*loop.body, None):
        if isinstance(stmt, (Assign, Store, If, Comment)):
            between.append(stmt)
            continue
        around = in_loops((loop,), tuple(between)) if between else None
        inner = in_loops((stmt,), stmt.body) if isinstance(stmt, For) else None
        if (between and around is None) or (stmt is not None and inner is None):
            return ()
        found += [part for part in (around, inner) if part is not None]
        between = []
    return tuple(found)


def _invariant(loop: For, parts: tuple[LoopNest, ...]) -> frozenset[Var]:
    """Scalars that one statement between the loops computes from invariants."""
    counts = Counter(var for stmt in traversal.statements(loop.body) for var in stmt.targets)
    varying = {loop.target, *counts}
    for stmt in (stmt for part in parts if part.loops[0] is loop for stmt in part.body):
        if not isinstance(stmt, Assign) or counts[stmt.targets[0]] > 1 or traversal.loads(stmt.value):
            continue
        if not traversal.free_vars(stmt.value) & varying:
            varying -= set(stmt.targets)
    return frozenset(counts.keys() - varying)


def _live_across_parts(parts: tuple[LoopNest, ...]) -> set[Var]:
    """Scalars that are read in another part than they are assigned in, or in another iteration of an inner loop."""
    found: set[Var] = set()
    for k, part in enumerate(parts):
        elsewhere = {var for other in (*parts[:k], *parts[k + 1 :]) for var in other.assigned}
        found |= part.first_read & (elsewhere | part.assigned)
    return found


def _strided_array(loop: For, inner: list[LoopNest]) -> Var | None:
    """An array that the inner loops access by columns, if consecutive iterations access adjacent elements."""
    found: list[Var] = []
    for part in inner:
        for access in part.accesses:
            *front, last = access.index or (Const(0),)
            mentioned = {var for item in front for var in traversal.free_vars(item)}
            if loop.target in mentioned or (last != loop.target and loop.target in traversal.free_vars(last)):
                return None
            if last == loop.target:
                if not isinstance(access.array.type, Array) or access.array.type.layout != "C":
                    return None
                if part.loops[0].target in mentioned:
                    found.append(access.array)
    return found[0] if found else None


# ---- the new loops ---------------------------------------------------------------------------------------------------


def _interchanged(found: _Interchange, rows: dict[Var, Var]) -> Iterator[Stmt]:
    """The loops with interleaved iterations."""
    for part in found.parts:
        if not found.is_inner(part):
            yield from (replace(stmt) for stmt in part.body if _is_invariant(stmt, found))
    for part in found.parts:
        if not found.is_inner(part):
            yield from (replace(stmt) for stmt in part.body if isinstance(stmt, Comment))
            between = [stmt for stmt in part.body if not _is_invariant(stmt, found) and not isinstance(stmt, Comment)]
            if between:
                yield _along_row(found, between, rows)
            continue
        (loop,) = part.loops
        once = _hoisted(part, found)
        rest = [stmt for stmt in part.body if stmt not in once]
        yield replace(loop, body=(*(replace(stmt) for stmt in once), _along_row(found, rest, rows)))


def _is_invariant(stmt: Stmt, found: _Interchange) -> bool:
    return isinstance(stmt, Assign) and stmt.targets[0] in found.invariant


def _hoisted(part: LoopNest, found: _Interchange) -> list[Stmt]:
    """The statements of an inner loop that are the same in every iteration of the outer loop."""
    written = {access.array for other in found.parts for access in other.accesses if access.writes}
    counts = Counter(var for stmt in part.body for var in stmt.targets)
    varying = {found.loop.target, *found.expanded, *part.assigned}
    once: list[Stmt] = []
    for stmt in part.body:
        if isinstance(stmt, Comment):
            once.append(stmt)
        if isinstance(stmt, Assign) and counts[stmt.targets[0]] == 1 and stmt.targets[0] not in found.expanded:
            arrays = {load.array for load in traversal.loads(stmt.value)}
            if not traversal.free_vars(stmt.value) & varying and not arrays & written:
                once.append(stmt)
                varying -= set(stmt.targets)
    return once


def _along_row(found: _Interchange, stmts: Sequence[Stmt], rows: dict[Var, Var]) -> For:
    """Statements of all iterations, with rows for the expanded scalars."""
    counter = found.loop.target
    loads: dict[Var, Expr] = {number: Load(row, (counter,), number.type) for number, row in rows.items()}
    body: list[Stmt] = []
    for stmt in stmts:
        new: Any = traversal.map_headers(stmt, lambda part: traversal.substitute(part, loads))
        if isinstance(new, Assign) and new.targets[0] in rows:
            new = _stored(rows[new.targets[0]], counter, new)
        body.append(replace(stmt) if new is stmt else new)  # the original is in the other version
    return For(counter, Const(0), found.count, Const(1), tuple(body), found.loop.origin)


def _stored(row: Var, counter: Var, stmt: Assign) -> Store:
    """An assignment of a scalar as one of its element in a row."""
    match stmt.value:
        case Call(operator.add, (Load(array, (place,)), value)) if array == row and place == counter:
            return Store(row, (counter,), value, True, stmt.origin)
    return Store(row, (counter,), stmt.value, False, stmt.origin)
