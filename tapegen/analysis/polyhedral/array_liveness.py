"""Array liveness: whether the elements that a statement reads are unmodified at the end of the forward sweep.

    finality = final_loads(function)
    finality.is_final(stmt, array, index)      # re-reading `array[index]` in the backward sweep gives what `stmt` read
    finality.unmodified_element(var)                      # `a[i]` where `a[i] = var` saved it and nothing overwrites it
    finality.value_available(var, stmt)        # the variable still holds its value (or is an enclosing loop's counter)

Each answer True is a proof; False means that there is no proof.  Subscripts that are linear in loop counters and in
values that are constant during a call are decided exactly, with the integer set library isl; others may be
any position.  Without islpy only locations that no later statement writes at all are final.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from tapegen.analysis.memory_access import expressions, operands, viewed
from tapegen.analysis.polyhedral.access_relations import Region, Regions
from tapegen.analysis.polyhedral.constraints import And, Formula, Or, at_least, equal, other_instance
from tapegen.analysis.polyhedral.index_extents import Extents
from tapegen.analysis.polyhedral.isl import Solver
from tapegen.analysis.polyhedral.schedule import Site, Sites, sites_of
from tapegen.analysis.side_effects import Effects, effects_of
from tapegen.ir.affine import Affine
from tapegen.ir.nodes import (
    Assign,
    Const,
    Function,
    Load,
    Slice,
    Stmt,
    Store,
    Var,
)
from tapegen.ir.types import Array, Scalar

__all__ = ["ArrayLiveness", "final_loads"]


def final_loads(function: Function, effects: Effects | None = None) -> ArrayLiveness:
    """Prepare `ArrayLiveness` for a lowered function.  Facts are computed on demand.

    Parameters
    ----------
    function : Function
        A lowered program (the invariants of `tapegen.ir`).
    effects : Effects, optional
        Facts of `effects_of(function)`, if they are at hand.
    """
    return ArrayLiveness(function, effects_of(function) if effects is None else effects)


class ArrayLiveness:
    """Facts about when elements are written.  Made by `final_loads`; belongs to one thread."""

    def __init__(self, function: Function, effects: Effects) -> None:
        self.function = function
        self.effects = effects
        self.sites: Sites = sites_of(function)
        self.solver = Solver()
        self.extents = Extents(self.sites, self.solver)
        self._regions = Regions(self.sites, effects, self.extents)
        self._answers: dict[tuple[Stmt, Var, tuple[Any, ...], bool], bool] = {}
        self._writes: dict[Stmt, list[Region]] = {}

    # ---- finality ----------------------------------------------------------------------------------------------------

    def is_final(self, stmt: Stmt, array: Var, index: Sequence[Any] = (), *, after: bool = False) -> bool:
        """Whether `array[index]`, as `stmt` reads it, can be re-read in the backward sweep.

        True implies two things.  No write that runs after the read (later statements, later iterations of every
        enclosing loop) modifies the elements.  And the array is still reachable: it is never written at all (so that a
        copy made at any time serves), or `array` still denotes it, or `array` is a view that can be recomputed from
        such a variable.  In the last case the view must be recomputed, from the same integers; the elements must not
        be copied where the view is defined, which may be before their last write.

        The caller checks the variables in `index` (`value_available`).

        Parameters
        ----------
        stmt : Stmt
            A statement of the function that reads the elements; of a compound statement, its header.
        array : Var
            The variable through which it reads: an array or a run-time list.
        index : sequence
            Index items; empty for the whole array.
        after : bool
            Ask about the elements after `stmt` rather than before it: whether the value of a Store stays.
        """
        key = (stmt, array, tuple(index), after)
        if key not in self._answers:
            self._answers[key] = self._can_be_named(stmt, array) and self.contents_final(
                stmt, array, index, after=after
            )
        return self._answers[key]

    def contents_final(self, stmt: Stmt, array: Var, index: Sequence[Any] = (), *, after: bool = False) -> bool:
        """The first half of `is_final`: the elements of what `array` denotes at `stmt` are not modified."""
        site = self.sites.header(stmt)
        roots = self.effects.roots(array)
        if site is None or not roots:
            return False
        later = [
            (write, times)
            for write in self._writers(roots)
            if (times := self._later(site, write, inclusive=not after)) is not None
        ]
        if not later:
            return True
        if self.solver.isl is None:
            return False
        reads = self._regions.regions(array, index, site)
        return not any(
            self._may_alias(read, site, region, write, times)
            for read in reads
            for write, times in later
            for region in self._written(write)
            if region.root == read.root
        )

    def unmodified_element(self, var: Var) -> Load | None:
        """Elements that hold the value of `var`, from its definition on to the end of the forward sweep.

        After `t = sqrt(s)` and `a[i] = t`, with nothing written to `a[i]` later, `a[i]` serves wherever the backward
        sweep needs `t`.  The Store is in the block of the only definition, so that both run in the same iterations;
        the index is that of the Store, whose variables the caller checks (`value_available`).
        """
        definitions = self.sites.definitions.get(var, [])
        if len(definitions) != 1 or var in self.sites.params:
            return None
        for store in self._stores_of.get(var, ()):
            type_ = Scalar(var.type.dtype, python=False) if isinstance(var.type, Scalar) else var.type
            load = Load(store.array, store.index, type_)
            if (
                _runs_with(definitions[0].site, self.sites.at[store])
                and self._stores_exactly(var, load, self.sites.at[store])
                and not (isinstance(var.type, Array) and self.effects.is_written(var))
                and self.is_final(store, store.array, store.index, after=True)
            ):
                return load
        return None

    @cached_property
    def _stores_of(self) -> dict[Var, list[Store]]:
        found: dict[Var, list[Store]] = {}
        for stmt in self.sites.at:
            if isinstance(stmt, Store) and isinstance(stmt.value, Var) and not stmt.accumulate:
                found.setdefault(stmt.value, []).append(stmt)
        return found

    def _stores_exactly(self, var: Var, load: Load, site: Site) -> bool:
        """Whether a store of `var` there neither converts nor broadcasts it."""
        if not isinstance(load.array.type, Array) or not isinstance(var.type, (Array, Scalar)):
            return False
        if load.array.type.dtype != var.type.dtype:
            return False
        if any(not isinstance(item, Slice) and isinstance(item.type, Array) for item in load.index):
            return False
        rank = load.array.type.rank - sum(not isinstance(item, Slice) and item != Const(None) for item in load.index)
        rank += sum(item == Const(None) for item in load.index)
        if isinstance(var.type, Scalar):
            return rank == 0
        return rank == var.type.rank and all(
            self.extents.extent(var, axis, site) == self.extents.extent_of_load(load.array, load.index, axis, site)
            for axis in range(rank)
        )

    def value_available(self, var: Var, stmt: Stmt) -> bool:
        """Whether `var` has, in the backward sweep of the block of `stmt`, the value that `stmt` sees.

        True for variables that nothing assigns after `stmt` (parameters, values set once, phis whose last assignment is
        past) and for the counters of enclosing loops, which the backward sweep counts itself.  For an array the answer
        concerns the reference, not the elements.
        """
        site = self.sites.header(stmt)
        if site is None:
            return False
        if self.sites.counting(var, site) is not None:
            return True
        rebinding = [definition.site for definition in self.sites.definitions.get(var, [])]
        rebinding += [self.sites.at[loop] for loop in self.sites.counted.get(var, [])]
        return all(self._later(site, other, inclusive=False) is None for other in rebinding)

    def _can_be_named(self, stmt: Stmt, array: Var) -> bool:
        """Whether the backward sweep can reach the array that `array` denotes at `stmt`."""
        if not self.effects.is_written(array):
            return True
        name: Var | None = array
        while name is not None:
            if self.value_available(name, stmt):
                return True
            name = self._base(name)
        return False

    def _base(self, var: Var) -> Var | None:
        """The array of which a variable is a recomputable view."""
        definitions = self.sites.definitions.get(var, [])
        if len(definitions) != 1 or var in self.sites.params:
            return None
        return viewed(definitions[0].value)

    # ---- execution order ---------------------------------------------------------------------------------------------

    def _later(self, first: Site, second: Site, *, inclusive: bool) -> Formula | None:
        """When `second` runs after `first`: a condition on the counters of `first` and of `second` as another instance.

        None if it never does.  `inclusive` counts a statement as running after itself.
        """
        cases: list[Formula] = []
        equal_so_far: list[Formula] = []
        for loop in first.common_loops(second):
            induction_variable = self.extents.integers.induction_variable(loop)
            mine = Affine.atom(induction_variable.order)
            gap = (other_instance(mine) - mine) * induction_variable.direction
            cases.append(And((*equal_so_far, at_least(gap, 1))))
            equal_so_far.append(equal(gap, 0))
        order = first.order(second)
        if order == "before" or (order == "same" and inclusive):
            cases.append(And(tuple(equal_so_far)))
        return Or(tuple(cases)) if cases else None

    # ---- conflicts ---------------------------------------------------------------------------------------------------

    def _writers(self, roots: frozenset[str]) -> list[Site]:
        writers = {stmt: None for root in sorted(roots) for stmt in self.effects.writers.get(root, ())}
        return [self.sites.at[stmt] for stmt in writers]

    def _written(self, site: Site) -> list[Region]:
        """The regions that a statement writes."""
        stmt = site.stmt
        if stmt not in self._writes:
            if isinstance(stmt, Store):
                self._writes[stmt] = self._regions.regions(stmt.array, stmt.index, site)
            else:
                self._writes[stmt] = [Region(root) for root in sorted(self.effects.writes[stmt])]
        return self._writes[stmt]

    def _may_alias(self, a: Region, at: Site, b: Region, b_at: Site, times: Formula) -> bool:
        """Whether two accesses to one root may be to the same element, in iterations that satisfy a condition.

        The condition and the region `b` refer to the counters of `b_at` by the symbols of the other instance.
        """
        integers = self.extents.integers
        parts: list[Formula] = [times, integers.domain(at), *a.facts, integers.domain(b_at).other_instance()]
        parts += [fact.other_instance() for fact in b.facts]
        if a.view == b.view:
            parts += [
                equal(mine, other_instance(theirs))
                for mine, theirs in zip(a.coordinates, b.coordinates)
                if mine is not None and theirs is not None
            ]
        for loop in at.common_loops(b_at):
            if loop in a.instance and loop in b.instance:
                trip = Affine.atom(integers.induction_variable(loop).order)
                parts.append(equal(trip, other_instance(trip)))
        return self.solver.possible(*parts)

    def _accesses(self, site: Site) -> Iterator[tuple[Region, bool]]:
        """The regions that a statement (of a compound statement: its header) accesses, and whether it writes them."""
        stmt = site.stmt
        if stmt in self.effects.writes:
            for region in self._written(site):
                yield region, True
        for expr in expressions(stmt):
            makes_view = isinstance(stmt, Assign) and viewed(stmt.value) is not None  # which reads no element
            for array, index in list(operands(expr))[makes_view:]:
                for region in self._regions.regions(array, index, site):
                    yield region, False


def _runs_with(first: Site, second: Site) -> bool:
    """Whether the second statement follows the first in the same block, and certainly runs whenever it does."""
    same_block = first.path[:-1] == second.path[:-1] and first.path[-1][0] == second.path[-1][0]
    return (
        same_block and first.loops == second.loops and first.guards == second.guards and first.order(second) == "before"
    )
