"""Innermost loops as a processor likes them: what does not change in front of them, and counting up.

An element that a loop only reads, always the same one, is read once before the loop; the compiler below cannot know
that no store of the loop meets it.  A loop that counts down counts up if no trip touches what another one writes.  In a
backward sweep, which adds in no order that anybody has asked for, what waits for nothing leaves a loop whose trips wait
for each other (`waiting`).
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from dataclasses import replace

from tapegen.ir import rewrite
from tapegen.ir.nodes import Assign, Const, Expr, Function, Stmt, Var
from tapegen.transform.nests.accesses import Access, Nest, in_loops, same_trip
from tapegen.transform.nests.affine import Affine, plus
from tapegen.transform.nests.bounds import Facts
from tapegen.transform.nests.control import read_after_loops
from tapegen.transform.nests.waiting import Meetings, deciding, factored, parted
from tapegen.transform.nests.walking import Walk, touched


def eased(function: Function) -> Function:
    """The same program with easier innermost loops."""
    return replace(function, body=_Easing(function).block(function.body))


class _Easing(Walk):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.lasting = read_after_loops(function.body)
        self.assigned: dict[Var, int] = {}
        self.read: Counter[Var] = Counter()  # in how many expressions
        for stmt in rewrite.statements(function.body):
            self.read.update(var for part in rewrite.headers(stmt) for var in rewrite.free_vars(part))
            for var in rewrite.defines(stmt):
                self.assigned[var] = self.assigned.get(var, 0) + 1

    @functools.cached_property
    def deciding(self) -> set[Var]:
        """Names whose value must not change in its last place."""
        return deciding(self.function, self.memory)

    def innermost(self, nest: Nest, before: list[Stmt], outside: Facts) -> list[Stmt]:
        """What moves in front of a loop, and the loop."""
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
        loads = rewrite.loads(stmt.value)
        (target,) = stmt.targets
        varying = {*nest.counters, *nest.assigned}
        if not loads or self.assigned[target] > 1 or rewrite.free_vars(stmt.value) & varying:
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
        if loop.step not in (Const(1), Const(-1)) or loop.target in self.lasting:
            return [nest.stmt]
        if loop.step == Const(1) and not self.backward:
            return [nest.stmt]
        meet = functools.partial(self._meet_elsewhere, nest)
        pairs = itertools.combinations_with_replacement(nest.accesses, 2)
        if nest.first_read & nest.assigned or any(meet(a, b) for a, b in pairs):
            if not self.backward:
                return [nest.stmt]
            meetings = Meetings(meet, lambda a, b: meet(a, b) or self.may_meet(a.array, a.index, b), self.memory.group)
            nest = factored(nest, self.memory, self.deciding)
            return parted(nest, meetings, self.deciding, self.names) or [nest.stmt]
        if loop.step == Const(1) or any(self.read[var] > count for var, count in _read_in(nest).items()):
            return [nest.stmt]  # what is read after the loop is of the last trip
        return [replace(nest.stmt, start=plus(loop.stop, 1), stop=plus(loop.start, 1), step=Const(1))]

    def _meet_elsewhere(self, nest: Nest, a: Access, b: Access) -> bool:
        """Whether an element that one access writes may be that of the other one on another trip."""
        if not (a.writes or b.writes) or self.memory.group(a.array) != self.memory.group(b.array):
            return False
        if a.array != b.array:
            return True
        (loop,) = nest.loops
        varying = {loop.target, *nest.assigned}
        if same_trip(a.index, b.index, {loop.target}, varying):
            return False
        elsewhere: dict[Var, Expr] = {var: Var(f"?{var.name}", var.type) for var in varying}  # on another trip
        counter = Affine.atom(elsewhere[loop.target])
        first, last = (loop.start, loop.stop) if loop.step == Const(1) else (loop.stop, loop.start)
        first, last = (first, plus(last, -1)) if loop.step == Const(1) else (plus(first, 1), last)
        with self.facts.supposing(self.facts.form(last) - counter, counter - self.facts.form(first)):
            return not self.apart(a.index, tuple(rewrite.substitute(item, elsewhere) for item in b.index))


def _read_in(nest: Nest) -> dict[Var, int]:
    """In how many expressions the body of a nest reads what it assigns."""
    parts = [part for stmt in nest.body for part in rewrite.headers(stmt)]
    return {var: sum(var in rewrite.free_vars(part) for part in parts) for var in nest.assigned}
