"""Shapes of dead arrays that the backward sweep reads: known from live values, or recorded."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from tapegen.analysis.scopes import Scope
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Call, Const, Expr, Stmt, Tuple, Var
from tapegen.ir.types import Array, ListOf, Scalar
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.reverse import Sweeps
from tapegen.transform.recording.decisions import Decision, Key
from tapegen.transform.recording.rematerialize import Rematerializer


class Planner(Protocol):
    """Decides how values reach the backward sweep (`plan.RecordingPlanner`)."""

    rematerializer: Rematerializer
    decided: dict[Key, Decision]
    order: dict[Stmt, int]

    def require(self, var: Var, owner: Scope) -> None:
        """Make a value available."""
        ...

    def record(self, var: Var, owner: Scope, why: str) -> None:
        """Record a value."""
        ...


class DeadArrayShapes:
    """Extents that replace reads of array shapes.

    Attributes
    ----------
    reads : list
        The arrays whose shapes the backward sweep reads, and where.
    shapes : dict
        The extents to read instead.
    on_entry : dict
        Extents that are recorded at the start of a block.
    """

    def __init__(self, sweeps: Sweeps, facts: Facts, names: NameSupply, planner: Planner) -> None:
        self.sweeps, self.names, self.planner = sweeps, names, planner
        self.scopes, self.effects, self.extents = facts.scopes, facts.effects, facts.shapes
        self.reads: list[tuple[Var, Scope]] = []
        self.shapes: dict[Key, tuple[Expr, ...]] = {}
        self.on_entry: dict[Scope, list[Assign]] = {}

    def resolve(self) -> None:
        """Make reads of shapes possible where the array itself is dead."""
        for var, scope in self.reads:
            owner = self.scopes.owner_seen_from(var, scope)
            key = (var, owner)
            if key in self.shapes or self.planner.rematerializer.is_live(owner):
                continue
            if isinstance(var.type, ListOf):
                if key in self.planner.decided and var in self.sweeps.captures:
                    continue  # an item of a list that the tape returns
                self.shapes[key] = (self._saved_extent(var, owner, 0),)
                continue
            if key in self.planner.decided or not isinstance(var.type, Array):
                continue
            extents = []
            for axis, extent in enumerate(self.extents.of(var)):
                extents.append(self._extent(extent, owner) or self._saved_extent(var, owner, axis))
            self.shapes[key] = tuple(extents)

    def _extent(self, extent: tuple[int, tuple[tuple[tuple[str, str, int], int], ...]], owner: Scope) -> Expr | None:
        constant, terms = extent
        total: Expr = Const(constant)
        for symbol, coefficient in terms:
            kind, name, axis = symbol
            if coefficient < 0:
                return None
            term: Expr | None
            source = next((v for v in self.scopes.owner if v.name == name), None)
            if symbol in self.extents.cuts:
                term = cut(*(self._extent(part, owner) for part in self.extents.cuts[symbol]))
                if term is None:
                    return None
            elif source is None or kind not in ("param", "int"):
                return None
            elif kind == "param":
                term = Call(intrinsics.dim, (source, Const(axis)), (), Scalar("int64"))
            else:
                seen = self.scopes.owner_seen_from(source, owner)
                if not owner.within(seen):
                    return None
                self.planner.require(source, seen)
                term = source
            if coefficient != 1:
                term = Call(operator.mul, (Const(coefficient), term), (), Scalar("int64"))
            total = builders.int_add(term, total) if isinstance(total, Const) else builders.int_add(total, term)
        return total if constant >= 0 else Call(max, (total, Const(0)), (), Scalar("int64"))

    def _saved_extent(self, var: Var, owner: Scope, axis: int) -> Expr:
        kept = Var(self.names.fresh(f"{var.name}_n{axis}"), Scalar("int64"))
        self.sweeps.captures.add(kept)
        self.scopes.owner[kept] = owner
        is_list = isinstance(var.type, ListOf)
        extent = (
            Call(len, (var,), (), Scalar("int64"))
            if is_list
            else Call(intrinsics.dim, (var, Const(axis)), (), Scalar("int64"))
        )
        defined = self.scopes.assigns.get(var, ())
        origin = defined[-1].origin if defined else None
        read = Assign((kept,), extent, None if origin is None else origin.of_adjoint)
        self.scopes.assigns[kept] = [read]
        if var in owner.carried:
            self.on_entry.setdefault(owner, []).append(read)
        else:
            anchor = self.last_definition(var, owner)
            assert anchor is not None
            self.sweeps.after.setdefault(anchor, []).append(read)
        self.planner.record(kept, owner, "extent of an array that is dead")
        return kept

    def replaced(self, node: object, scope: Scope) -> object:
        def change(part: object) -> object:
            if isinstance(part, Call) and (position := traversal.shape_only_argument(part.func)) is not None:
                array = part.args[position]
                if isinstance(array, Var) and array in self.scopes.owner:
                    key = (array, self.scopes.owner_seen_from(array, scope))
                    if key in self.shapes:
                        return _of_shape(part, array, self.shapes[key])
            return part

        return traversal.map_expr(node, change)

    def last_definition(self, var: Var, scope: Scope) -> Stmt | None:
        """The statement of a scope's own block after which a value of that scope is complete."""
        last = None
        complete: list[Stmt] = list(self.scopes.assigns.get(var, ()))
        if isinstance(var.type, (Array, ListOf)):  # an array is complete after the last store into it
            roots = self.effects.roots(var)
            complete += [stmt for stmt in self._writers(roots) if self.scopes.at[stmt].within(scope)]
        for stmt in complete:
            anchor: Stmt | None = stmt
            while anchor is not None and self.scopes.at[anchor] is not scope:
                anchor = self.scopes.at[anchor].header
            if anchor is not None and (last is None or self.planner.order[anchor] > self.planner.order[last]):
                last = anchor
        return last

    def _writers(self, roots: frozenset[str]) -> Iterable[Stmt]:
        for root in sorted(roots):
            yield from self.effects.writers.get(root, ())


def _of_shape(call: Call, array: Var, extents: tuple[Expr, ...]) -> Expr:
    """A call that reads the shape of an array, given the extents instead."""
    if isinstance(array.type, ListOf):
        return extents[0] if call.func is len else call
    assert isinstance(array.type, Array)
    shape: Expr = extents[0] if len(extents) == 1 else Tuple(extents)
    dtype: tuple[Expr, ...] = () if array.type.dtype == "float64" else (Const(getattr(np, array.type.dtype)),)
    match call.func:
        case np.zeros_like:
            return Call(np.zeros, (shape, *dtype), (), call.type)
        case np.ones_like:
            return Call(np.ones, (shape, *dtype), (), call.type)
        case np.empty_like:
            return Call(np.empty, (shape, *dtype), (), call.type)
        case np.full_like:
            return Call(np.full, (shape, call.args[1], *dtype), (), call.type)
        case intrinsics.dim:
            axis = call.args[1]
            assert isinstance(axis, Const) and isinstance(axis.value, int)
            return extents[axis.value]
        case intrinsics.shape | np.shape:
            return Tuple(extents)
        case intrinsics.sum_to:
            return Call(intrinsics.sum_to, (call.args[0], Call(np.empty, (shape,), (), array.type)), (), call.type)
        case _:
            if call.func is np.size or call.func is len:
                total = extents[0] if extents else Const(1)
                for extent in extents[1:] if call.func is np.size else ():
                    total = Call(operator.mul, (total, extent), (), Scalar("int64"))
                return total
    return call


def cut(extent: Expr | None, lo: Expr | None, hi: Expr | None) -> Expr | None:
    """The extent of a slice that the end of the array may truncate."""
    if extent is None or lo is None or hi is None:
        return None
    end = Call(min, (hi, extent), (), Scalar("int64"))
    if builders.is_const(lo, 0):
        return end
    return Call(max, (Call(operator.sub, (end, lo), (), Scalar("int64")), Const(0)), (), Scalar("int64"))
