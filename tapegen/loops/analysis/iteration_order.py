"""Legal iteration orders of an innermost loop: as it is, reversed, or only sequential.

A loop that counts down may count up if no iteration accesses an element that another one writes.  In a backward sweep,
whose additions have no prescribed order, all iterations may add to the same element.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Literal

from tapegen.ir import traversal
from tapegen.ir.affine import Affine, is_int, is_real, plus
from tapegen.ir.nodes import Assign, Call, Const, Expr, For, Store, Var
from tapegen.loops.analysis.block_queries import read_elsewhere
from tapegen.loops.analysis.dependence import Access, LoopNest, same_iteration
from tapegen.loops.analysis.loop_visitor import InnermostLoopPass
from tapegen.loops.analysis.rounding_sensitive import deciding


@dataclass(frozen=True)
class Conflicts:
    """Which accesses of a loop may refer to the same element.

    Attributes
    ----------
    elsewhere : callable
        Whether two accesses may refer to the same element in different iterations.
    anywhere : callable
        Whether they may refer to the same element at all.
    group : callable
        The representative of the alias set of an array.
    """

    elsewhere: Callable[[Access, Access], bool]
    anywhere: Callable[[Access, Access], bool]
    group: Callable[[Var], Var]


class IterationOrderPass(InnermostLoopPass):
    """A pass over innermost loops that queries the legal orders of their iterations."""

    @functools.cached_property
    def leaving(self) -> set[Var]:
        """Variables that are read where no enclosing block assigns them before."""
        return read_elsewhere(self.function)

    @functools.cached_property
    def deciding(self) -> set[Var]:
        """Variables whose value must not change in the last bit."""
        return deciding(self.function, self.memory)

    def order(self, nest: LoopNest) -> Literal["as it is", "reversible", "carried"]:
        """The legal orders of the iterations.

        Returns
        -------
        {"as it is", "reversible", "carried"}
            "reversible" for a loop that counts down and may count up; "carried" for one of a backward sweep whose
            iterations depend on each other.
        """
        (loop,) = nest.loops
        if not self.is_stepwise(loop):
            return "as it is"
        adds = self._only_adds(nest)
        if nest.checks:
            return "reversible" if adds and not self._any_conflict(nest, self._sums_in_place(nest)) else "as it is"
        if loop.step == Const(1) and not self.backward:
            return "as it is"
        carried = not nest.first_read.isdisjoint(nest.assigned)
        conflicting = (adds or not carried) and self._any_conflict(nest, self._sums_in_place(nest) if adds else set())
        if adds and not conflicting:
            return "reversible"
        if carried or conflicting:
            return "carried" if self.backward else "as it is"
        if loop.step == Const(1) or nest.assigned & self.leaving:
            return "as it is"  # values that are read after the loop are those of the last iteration
        return "reversible"

    def is_stepwise(self, loop: For) -> bool:
        """Whether a loop counts by one, and nothing outside of it uses the counter."""
        return loop.step in (Const(1), Const(-1)) and loop.target not in self.memory.lasting

    def conflicts(self, nest: LoopNest) -> Conflicts:
        """Which accesses of a loop may refer to the same element."""
        may_conflict = functools.cache(functools.partial(self._may_conflict, nest, integers_of(nest)))
        return Conflicts(
            may_conflict, lambda a, b: may_conflict(a, b) or self.may_alias(a.array, a.index, b), self.memory.group
        )

    def _only_adds(self, nest: LoopNest) -> bool:
        """Whether the iterations of a backward sweep that counts down carry no scalars but sums.

        The forward sweep has already checked what such a loop checks.
        """
        (loop,) = nest.loops
        if not self.backward or loop.step != Const(-1) or loop.target in self.memory.lasting:
            return False
        left = nest.assigned & (nest.first_read | self.leaving)
        return not left or not (left - sums_of(nest) or left & self.deciding)

    def _sums_in_place(self, nest: LoopNest) -> set[Access]:
        """Elements to which each iteration adds, in arrays that the loop accesses in no other way."""
        stores = [stmt for stmt in nest.body if isinstance(stmt, Store)]
        others = [stmt.array for stmt in stores if not stmt.accumulate]
        others += [access.array for access in nest.accesses if not access.writes]
        excluded = self.deciding.union(map(self.memory.group, others))
        varying = {*nest.counters, *nest.assigned}
        return {
            access
            for access in nest.accesses
            if access.writes and self.memory.group(access.array) not in excluded
            if not any(traversal.loads(item) or traversal.free_vars(item) & varying for item in access.index)
        }

    def _any_conflict(self, nest: LoopNest, sums: Set[Access]) -> bool:
        """Whether an iteration may access an element that another one writes, except for sums."""
        writes = [access for access in nest.accesses if access.writes and access not in sums]
        reads = {(access.array, access.index): access for access in nest.accesses if not access.writes}
        pairs = itertools.chain(
            itertools.combinations_with_replacement(writes, 2), itertools.product(writes, reads.values())
        )
        made = integers_of(nest)
        return any(self._may_conflict(nest, made, a, b) for a, b in pairs)

    def _may_conflict(self, nest: LoopNest, made: Mapping[Var, Expr], a: Access, b: Access) -> bool:
        """Whether the element that one access writes may be that of the other access in another iteration."""
        if not (a.writes or b.writes) or self.memory.group(a.array) != self.memory.group(b.array):
            return False
        if a.array != b.array:
            return True
        (loop,) = nest.loops
        varying = {loop.target, *nest.assigned}
        first_index, other_index = (tuple(traversal.substitute(item, made) for item in each.index) for each in (a, b))
        if same_iteration(first_index, other_index, {loop.target}, varying):
            return False
        mentioned = {var for item in other_index for var in traversal.free_vars(item) if var in varying}
        elsewhere: dict[Var, Expr] = {  # in another iteration
            var: Var(f"?{var.name}", var.type) for var in {loop.target, *mentioned}
        }
        counter = Affine.atom(elsewhere[loop.target])
        first, last = (loop.start, loop.stop) if loop.step == Const(1) else (loop.stop, loop.start)
        first, last = (first, plus(last, -1)) if loop.step == Const(1) else (plus(first, 1), last)
        facts = self.facts
        with facts.supposing(facts.form(last) - counter, counter - facts.form(first)):
            return not self.never_equal(
                first_index, tuple(traversal.substitute(item, elsewhere) for item in other_index)
            )


def integers_of(nest: LoopNest) -> dict[Var, Expr]:
    """How integers of an iteration are computed from the iteration number and invariants."""
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


def sums_of(nest: LoopNest) -> set[Var]:
    """Scalars that a loop only adds to."""
    found: set[Var] = set()
    for stmt in nest.body:
        match stmt:
            case Assign((target,), Call(operator.add | operator.sub, (first, value))) if first == target:
                others = (part for each in nest.body if each is not stmt for part in each.headers)
                assigned = sum(target in each.targets for each in nest.body)
                read = any(target in traversal.free_vars(part) for part in (value, *others))
                if assigned == 1 and not read and is_real(target):
                    found.add(target)
    return found
