"""Innermost loops as a processor likes them: what does not change in front of them, and counting up.

An element that a loop only reads, always the same one, is read once before the loop; the compiler below cannot know
that no store of the loop meets it.  A loop that counts down counts up if no trip touches what another one writes.  In a
backward sweep, which adds in no order that anybody has asked for, all trips may add to the same element, and what waits
for nothing leaves a loop whose trips wait for each other (`waiting`).
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import replace

from tapegen.ir import traversal
from tapegen.ir.nodes import Assign, Call, Const, Expr, For, Function, Stmt, Store, Var
from tapegen.ir.types import Scalar
from tapegen.loops.analysis.affine import Affine, is_int, plus
from tapegen.loops.analysis.dependence import Access, Nest, in_loops, same_trip
from tapegen.loops.analysis.flow_facts import Known
from tapegen.loops.analysis.loop_visitor import Walk, touched
from tapegen.loops.analysis.rounding_sensitive import deciding, following
from tapegen.loops.scalarize.control_flow import read_elsewhere
from tapegen.loops.vectorize.recurrences import Meetings, factored, parted


def eased(function: Function) -> Function:
    """The same program with easier innermost loops."""
    return replace(function, body=_Easing(function).block(function.body))


class _Easing(Walk):
    @functools.cached_property
    def leaving(self) -> set[Var]:
        """Names that are read where no block around assigns them before."""
        return read_elsewhere(self.function.body)

    @functools.cached_property
    def assigned(self) -> Counter[Var]:
        """How often each name is assigned."""
        return Counter([var for stmt in traversal.statements(self.function.body) for var in stmt.targets])

    @functools.cached_property
    def deciding(self) -> set[Var]:
        """Names whose value must not change in its last place."""
        return deciding(self.function, self.memory)

    @functools.cached_property
    def following(self) -> set[Var]:
        """Names of tangents."""
        return following(self.function, self.memory)

    def innermost(self, nest: Nest, before: list[Stmt], outside: Known) -> list[Stmt]:
        """What moves in front of a loop, and the loop."""
        if nest.checks:
            adds = self._only_adds(nest) and not self._any_meet(nest, self._sums_in_place(nest))
            return [_reversed(nest.stmt) if adds else nest.stmt]
        lifted: list[Stmt] = []
        for stmt in nest.body:
            if isinstance(stmt, Assign) and self._lasts(stmt, nest, [*before, *lifted]):
                lifted.append(stmt)
                rest = in_loops(nest.loops, tuple(each for each in nest.body if each is not stmt))
                assert rest is not None
                nest = rest
        return [*lifted, *self._ordered(nest)]

    # ---- what does not change ----------------------------------------------------------------------------------------

    def _lasts(self, stmt: Assign, nest: Nest, before: list[Stmt]) -> bool:
        """Whether a value of elements is the same on every trip, and may be worked out where there is none."""
        loads = traversal.loads(stmt.value)
        (target,) = stmt.targets
        varying = {*nest.counters, *nest.assigned}
        if not loads or self.assigned[target] > 1 or traversal.free_vars(stmt.value) & varying:
            return False
        writes = [access for access in nest.accesses if access.writes]
        return all(
            touched(load, before) and not any(self.may_meet(load.array, load.index, write) for write in writes)
            for load in loads
        )

    # ---- the order of trips ------------------------------------------------------------------------------------------

    def _ordered(self, nest: Nest) -> list[Stmt]:
        """A loop that counts up if it may; what is left of one whose trips wait for each other."""
        (loop,) = nest.loops
        if loop.step not in (Const(1), Const(-1)) or loop.target in self.memory.lasting:
            return [nest.stmt]
        if self.function.tangents and nest.first_read & nest.assigned:
            nest = factored(nest, self.memory, self.following - self.deciding, self.names, sums=True)
        if loop.step == Const(1) and not self.backward:
            return [nest.stmt]
        adds, waits = self._only_adds(nest), not nest.first_read.isdisjoint(nest.assigned)
        meets = (adds or not waits) and self._any_meet(nest, self._sums_in_place(nest) if adds else set())
        if adds and not meets:
            return [_reversed(nest.stmt)]
        if waits or meets:
            if not self.backward:
                return [nest.stmt]
            meet = functools.cache(functools.partial(self._meet_elsewhere, nest, _integers(nest)))
            meetings = Meetings(meet, lambda a, b: meet(a, b) or self.may_meet(a.array, a.index, b), self.memory.group)
            nest = factored(nest, self.memory, nest.assigned - self.deciding, self.names)
            return parted(nest, meetings, self.deciding, self.names) or [nest.stmt]
        if loop.step == Const(1) or nest.assigned & self.leaving:
            return [nest.stmt]  # what is read after the loop is of the last trip
        return [_reversed(nest.stmt)]

    def _only_adds(self, nest: Nest) -> bool:
        """Whether the trips of a backward sweep that counts down hand on no numbers but sums.

        What such a loop looks at to raise an error, the forward sweep has looked at before.
        """
        (loop,) = nest.loops
        if not self.backward or loop.step != Const(-1) or loop.target in self.memory.lasting:
            return False
        left = nest.assigned & (nest.first_read | self.leaving)
        return not left or not (left - _sums(nest) or left & self.deciding)

    def _sums_in_place(self, nest: Nest) -> set[Access]:
        """Elements to which each trip adds, in arrays to which a loop does nothing else."""
        stores = [stmt for stmt in nest.body if isinstance(stmt, Store)]
        others = [stmt.array for stmt in stores if not stmt.accumulate]
        others += [access.array for access in nest.accesses if not access.writes]
        kept = self.deciding.union(map(self.memory.group, others))
        varying = {*nest.counters, *nest.assigned}
        return {
            access
            for access in nest.accesses
            if access.writes and self.memory.group(access.array) not in kept
            if not any(traversal.loads(item) or traversal.free_vars(item) & varying for item in access.index)
        }

    def _any_meet(self, nest: Nest, sums: Set[Access]) -> bool:
        """Whether some trip may touch an element that another one writes, sums aside."""
        writes = [access for access in nest.accesses if access.writes and access not in sums]
        reads = {(access.array, access.index): access for access in nest.accesses if not access.writes}
        pairs = itertools.chain(
            itertools.combinations_with_replacement(writes, 2), itertools.product(writes, reads.values())
        )
        made = _integers(nest)
        return any(self._meet_elsewhere(nest, made, a, b) for a, b in pairs)

    def _meet_elsewhere(self, nest: Nest, made: Mapping[Var, Expr], a: Access, b: Access) -> bool:
        """Whether an element that one access writes may be that of the other one on another trip."""
        if not (a.writes or b.writes) or self.memory.group(a.array) != self.memory.group(b.array):
            return False
        if a.array != b.array:
            return True
        (loop,) = nest.loops
        varying = {loop.target, *nest.assigned}
        first_index, other_index = (tuple(traversal.substitute(item, made) for item in each.index) for each in (a, b))
        if same_trip(first_index, other_index, {loop.target}, varying):
            return False
        mentioned = {var for item in other_index for var in traversal.free_vars(item) if var in varying}
        elsewhere: dict[Var, Expr] = {  # on another trip
            var: Var(f"?{var.name}", var.type) for var in {loop.target, *mentioned}
        }
        counter = Affine.atom(elsewhere[loop.target])
        first, last = (loop.start, loop.stop) if loop.step == Const(1) else (loop.stop, loop.start)
        first, last = (first, plus(last, -1)) if loop.step == Const(1) else (plus(first, 1), last)
        facts = self.facts
        with facts.supposing(facts.form(last) - counter, counter - facts.form(first)):
            return not self.apart(first_index, tuple(traversal.substitute(item, elsewhere) for item in other_index))


def _integers(nest: Nest) -> dict[Var, Expr]:
    """What integers of a trip are made of: its number, and what lasts."""
    found: dict[Var, Expr] = {}
    often = Counter([var for stmt in nest.body for var in stmt.targets])
    for stmt in nest.body:
        if isinstance(stmt, Assign) and is_int(stmt.targets[0]) and not traversal.loads(stmt.value):
            (target,) = stmt.targets
            value = traversal.substitute(stmt.value, found)
            if (
                often[target] == 1
                and target not in nest.first_read
                and nest.assigned.isdisjoint(traversal.free_vars(value))
            ):
                found[target] = value
    return found


def _reversed(loop: For) -> For:
    return replace(loop, start=plus(loop.stop, 1), stop=plus(loop.start, 1), step=Const(1))


def _sums(nest: Nest) -> set[Var]:
    """Numbers that a loop only adds to."""
    found: set[Var] = set()
    for stmt in nest.body:
        match stmt:
            case Assign((target,), Call(operator.add | operator.sub, (first, value))) if first == target:
                others = (part for each in nest.body if each is not stmt for part in each.headers)
                assigned = sum(target in each.targets for each in nest.body)
                read = any(target in traversal.free_vars(part) for part in (value, *others))
                if assigned == 1 and not read and target.type == Scalar("float64", target.type.python):  # type: ignore[union-attr]
                    found.add(target)
    return found
