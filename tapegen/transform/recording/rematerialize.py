"""Rematerialization: values that the backward sweep has without a tape, because they are live, derived from the loop
counter, or recomputed.
"""

from __future__ import annotations

import builtins
import operator

import numpy as np

from tapegen.analysis.activity import is_view
from tapegen.analysis.memory_access import viewed
from tapegen.analysis.scopes import Scope
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.affine import minus
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Break, Call, Const, Expr, For, If, Load, Stmt, Var, While
from tapegen.ir.types import INT, Array, ListOf, Scalar
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.reverse import Sweeps
from tapegen.transform.recording import cost_model
from tapegen.transform.recording.induction import advance, assigned, summed

_OF_INTEGERS = frozenset(
    {operator.add, operator.sub, operator.mul, operator.neg, intrinsics.dim, np.size, builtins.len}
)


class Rematerializer:
    """Values of one program, by the scope whose value is meant.

    Parameters
    ----------
    sweeps, facts
        The ideal sweeps, and the analyses of the program.
    names : NameSupply
        Supply of fresh names.
    order : dict
        Positions of the statements; the snapshots that are taken here are added.
    everything : bool
        Recompute nothing (used to test the analysis).
    """

    def __init__(
        self, sweeps: Sweeps, facts: Facts, names: NameSupply, order: dict[Stmt, int], *, everything: bool
    ) -> None:
        self.sweeps, self.facts, self.names, self.order, self.everything = sweeps, facts, names, order, everything
        self.scopes, self.effects = facts.scopes, facts.effects
        self.snapshots: dict[tuple[Var, Stmt], Var] = {}
        self.rewritten: dict[Var, Assign] = {}  # values that are read from a snapshot

    def is_available(self, var: Var, owner: Scope) -> bool:
        """Whether a value needs neither a tape nor work."""
        if self.is_live(owner) or (isinstance(owner.header, For) and var == owner.header.target):
            return True
        counter = self.from_induction(var, owner)
        return counter is not None and all(
            self.is_live(seen) or self.from_induction(operand, seen) == operand
            for operand, seen in self.operands(Assign((var,), counter), owner)
            if operand != var
        )

    def is_live(self, owner: Scope) -> bool:
        """Whether the variable still holds the value."""
        return not owner.in_loop

    def definition(self, var: Var, owner: Scope) -> Assign | None:
        """The Assign by which a value can be recomputed."""
        if not self.everything and (counter := self.from_induction(var, owner)) is not None:
            return Assign((var,), counter)
        if var in self.rewritten:
            return self.rewritten[var]
        if var in self.sweeps.captures or var in self.sweeps.made or self.scopes.is_merge(var):
            return None
        assigns = self.scopes.assigns.get(var)
        if not assigns or len(assigns[0].targets) != 1 or isinstance(var.type, ListOf):
            return None
        stmt = assigns[0]
        unmodified_element = self.facts.unmodified_element(var, self.scopes.at[stmt]) if not self.everything else None
        if unmodified_element is not None and cost_model.work(stmt.value) > 1:
            recomputation = Assign((var,), unmodified_element, stmt.origin)
            self.scopes.at[recomputation] = self.scopes.at[stmt]
            self.rewritten[var] = recomputation
            return recomputation
        if isinstance(stmt.value, Call) and (
            stmt.value.func in (intrinsics.item, intrinsics.new_list) or intrinsics.changes(stmt.value.func)
        ):
            return None
        if (size := self._size(stmt)) is not None:
            return size
        for array in traversal.reads_by_kind(stmt.value)[1]:
            if not self.is_live(self.scopes.owner_seen_from(array, self.scopes.at[stmt])):
                return None  # the shape of an array that is dead
        if isinstance(var.type, Array) and viewed(stmt.value) is None and self.effects.is_written(var):
            return None  # later stores into it are not part of its definition
        for load in traversal.loads(stmt.value):
            if not self.facts.is_final(stmt, load.array, load.index):
                snapshot = self._snapshot(stmt, load) if load is stmt.value else None
                if snapshot is None:
                    return None
                recomputation = Assign(stmt.targets, Load(snapshot, load.index, load.type), stmt.origin)
                self.scopes.at[recomputation] = self.scopes.at[stmt]
                self.rewritten[var] = recomputation
                return recomputation
        if isinstance(stmt.value, Load):  # its index may read the length and the items of a list
            within = traversal.unindexed_reads(stmt.value)
            return stmt if all(self.facts.is_final(stmt, operand, ()) for operand in within) else None
        kept: dict[Var, Expr] = {}
        for operand in traversal.unindexed_reads(stmt.value):
            if not self.facts.is_final(stmt, operand, ()):
                if is_view(stmt.value):
                    return None
                capture = self.sweeps.captured.get((stmt, builders.copy(operand)))
                if capture is None and owner.in_loop and isinstance(operand.type, Array):
                    capture = self.sweeps.version(stmt, operand)
                if capture is None:
                    return None
                kept[operand] = capture
        if kept:
            stmt = Assign(stmt.targets, traversal.substitute(stmt.value, kept), stmt.origin)
            self.scopes.at[stmt] = self.scopes.at[assigns[0]]
            self.rewritten[var] = stmt
        return stmt

    def _size(self, stmt: Assign) -> Assign | None:
        """A size read from the parameter whose size it is, instead of an array that is dead by then."""
        match stmt.value:
            case Call(np.size | builtins.len, (Var(_, Array(rank=rank)) as array,)) if (
                rank == 1 or stmt.value.func is len
            ):
                axis = 0
            case Call(intrinsics.dim, (Var(_, Array()) as array, Const(int() as axis))):
                pass
            case _:
                return None
        constant, terms = self.facts.shapes.of(array)[axis]
        if constant or len(terms) != 1 or self.is_live(self.scopes.owner_seen_from(array, self.scopes.at[stmt])):
            return None
        ((kind, name, axis), coefficient) = terms[0]
        whole = next((var for var in self.scopes.owner if var.name == name), None)
        if kind != "param" or coefficient != 1 or whole is None:
            return None
        return Assign(stmt.targets, Call(intrinsics.dim, (whole, Const(axis)), (), stmt.targets[0].type), stmt.origin)

    def operands(self, stmt: Assign, owner: Scope) -> list[tuple[Var, Scope]]:
        """The values that a definition reads, each with the scope whose value it reads."""
        scope = self.scopes.at.get(stmt, owner)
        reads = sorted(traversal.reads_by_kind(stmt.value)[0] & self.scopes.owner.keys(), key=lambda v: v.name)
        return [(var, self.scopes.owner_seen_from(var, scope)) for var in reads]

    def from_induction(self, var: Var, owner: Scope) -> Expr | None:
        """A counter as a function of the iteration that is being reversed."""
        loop = owner.header
        if not isinstance(loop, (For, While)):
            return None
        if isinstance(loop, For) and var == loop.target:
            return self.sweeps.counters.get(loop, var)
        if var not in owner.carried or not isinstance(var.type, Scalar) or var.type.dtype != "int64":
            return None
        trip = self._iteration(loop)
        assigns = self.scopes.assigns[var]
        inner = [stmt for stmt in assigns if self.scopes.at[stmt].within(owner)]
        outer = [stmt for stmt in assigns if stmt not in inner]
        inner = [stmt for stmt in inner if not _ends_in_break(self.scopes.at[stmt], owner)]
        if (
            trip is None
            or len(inner) != 1
            or len(outer) != 1
            or not self._runs_each_iteration(self.scopes.at[inner[0]], owner)
        ):
            return None
        step = advance(var, assigned(inner[0], var), owner, self.scopes)
        start = assigned(outer[0], var)
        if step is None or start is None:
            return None
        by = summed(step, loop if isinstance(loop, For) else None, trip)
        invariants = step.without(loop.target).atoms if isinstance(loop, For) else step.atoms
        if by is None or not all(self._lasts(part, self.scopes.at[outer[0]]) for part in (start, *invariants)):
            return None
        return builders.int_add(start, by)

    def _lasts(self, start: Expr, scope: Scope) -> bool:
        """Whether scalars and sizes of a scope can be read again where its loops are reversed."""
        for part in traversal.subexpressions(start):
            if not isinstance(part, (Var, Const)) and not (isinstance(part, Call) and part.func in _OF_INTEGERS):
                return False
        numbers, sized = traversal.reads_by_kind(start)
        for var in numbers:
            if self.scopes.is_merge(var) and var not in self.scopes.owner_seen_from(var, scope).carried:
                return False  # the name has another value after the loop that changes it
        # a list is shorter by then
        return all(
            isinstance(array.type, Array) and self.is_live(self.scopes.owner_seen_from(array, scope)) for array in sized
        )

    def _snapshot(self, stmt: Assign, load: Load) -> Var | None:
        """A copy of the array taken before the loops that only read it."""
        owner = self.scopes.owner.get(load.array)
        if owner is None or not isinstance(load.array.type, Array) or isinstance(load.type, Array):
            return None
        roots = self.effects.roots(load.array)
        best: Stmt | None = None
        depth = 0
        levels = 0
        for scope in self.scopes.at[stmt].chain:
            if not scope.is_loop:
                continue
            loop = scope.header
            assert loop is not None
            if self._writes(loop, roots) or self.scopes.owner[load.array].within(scope) or load.array in scope.carried:
                break
            levels += 1
            best, depth = loop, levels
        if best is None or depth < load.array.type.rank:
            return None
        where = self.scopes.at[best]
        key = (load.array, best)
        if key not in self.snapshots:
            type_ = builders.copy(load.array).type
            kept = Var(self.names.fresh(f"{load.array.name}_kept"), type_)
            self.snapshots[key] = kept
            copied = Assign((kept,), builders.copy(load.array), best.origin)
            self.sweeps.before.setdefault(best, []).append(copied)
            self.sweeps.captures.add(kept)
            self.scopes.owner[kept] = self.scopes.at[copied] = where
            self.scopes.assigns[kept] = [copied]
            self.order[copied] = self.order[best]
        return self.snapshots[key]

    def _writes(self, loop: Stmt, roots: frozenset[str]) -> bool:
        return any(self.effects.writes.get(stmt, frozenset()) & roots for stmt in traversal.statements((loop,)))

    def _iteration(self, loop: For | While) -> Expr | None:
        if loop in self.sweeps.trip_index:
            return self.sweeps.trip_index[loop]
        if not isinstance(loop, For) or not isinstance(loop.step, Const) or not isinstance(loop.step.value, int):
            return None
        if not self._lasts(loop.start, self.scopes.at[loop]):
            return None
        step = loop.step.value
        passed = minus(loop.target, loop.start) if step > 0 else minus(loop.start, loop.target)
        return passed if abs(step) == 1 else Call(operator.floordiv, (passed, Const(abs(step))), (), INT)

    def _runs_each_iteration(self, scope: Scope, body: Scope) -> bool:
        """Whether a block runs in every iteration that does not exit the loop."""
        while scope is not body:
            header = scope.header
            if not isinstance(header, If) or scope.parent is None:
                return False
            other = header.orelse if scope.branch == 0 else header.body
            if not other or not isinstance(other[-1], Break):
                return False
            scope = scope.parent
        return True


def _ends_in_break(scope: Scope, body: Scope) -> bool:
    return scope is not body and bool(scope.block) and isinstance(scope.block[-1], Break)
