"""The analyses that the transforms share, computed once per program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tapegen.analysis.activity import Activity, activity_of
from tapegen.analysis.masked_values import set_aside
from tapegen.analysis.polyhedral.array_liveness import ArrayLiveness, final_loads
from tapegen.analysis.scopes import Scope, Scopes, scopes_of
from tapegen.analysis.selection_frontiers import Frontiers, frontiers_of
from tapegen.analysis.shape_inference import Shapes, shapes_of
from tapegen.analysis.side_effects import Effects, effects_of
from tapegen.analysis.value_ranges import Ranges, ranges_of
from tapegen.ir import traversal
from tapegen.ir.nodes import Function, Index, Load, Stmt, Var
from tapegen.ir.types import Array, ListOf


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about one lowered program."""

    activity: Activity
    scopes: Scopes
    effects: Effects
    finality: ArrayLiveness
    shapes: Shapes
    ranges: Ranges
    set_aside: frozenset[Var]
    frontiers: Frontiers
    again: bool

    def is_final(self, stmt: Stmt, array: Var, index: tuple[Index, ...], *, after: bool = False) -> bool:
        """Whether the backward sweep may read `array[index]` instead of the value it had at `stmt` (or `after` it).

        A written array that a loop carries under changing names is never final: in every iteration its name denotes
        another memory location.
        """
        if not isinstance(array.type, (Array, ListOf)):
            return True
        return not self._is_renamed(array, self.scopes.at[stmt]) and self.finality.is_final(
            stmt, array, index, after=after
        )

    def unmodified_element(self, var: Var, scope: Scope) -> Load | None:
        """The element that holds a value of a scope until the end of the forward sweep, if there is one."""
        load = self.finality.unmodified_element(var)
        return None if load is None or self._is_renamed(load.array, scope) else load

    def _is_renamed(self, array: Var, scope: Scope) -> bool:
        """Whether an enclosing loop carries the array under changing names, and writes it."""
        roots = self.effects.roots(array)
        for around in scope.chain:
            if not around.is_loop or around.header is None:
                continue
            carried = [var for var in around.carried if isinstance(var.type, (Array, ListOf))]
            if any(self.effects.roots(var) & roots for var in carried) and any(
                self.effects.writes.get(inner, frozenset()) & roots for inner in traversal.statements((around.header,))
            ):
                return True
        return False


@dataclass(frozen=True, slots=True)
class Places:
    """Facts about one lowered program that do not depend on what is differentiated."""

    scopes: Scopes
    effects: Effects
    shapes: Shapes


def places_of(function: Function) -> Places:
    """Analyze where the values of a lowered program live."""
    scopes = scopes_of(function)
    return Places(scopes, effects_of(function), shapes_of(function, scopes))


def facts_of(
    function: Function, wrt: Iterable[Var], results: Iterable[Var], places: Places | None = None, *, again: bool
) -> Facts:
    """Analyze a lowered program for the derivative of `results` by `wrt`, perhaps differentiated `again`."""
    if places is None:
        places = places_of(function)
    activity = activity_of(function, wrt, results)
    return Facts(
        activity,
        places.scopes,
        places.effects,
        final_loads(function, places.effects),
        places.shapes,
        ranges_of(function),
        set_aside(function, places.scopes, activity.sources, activity.active),
        frontiers_of(function, places.scopes, places.effects, places.shapes, activity.active),
        again,
    )
