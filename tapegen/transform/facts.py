"""The analyses that the transforms share, computed once per program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tapegen.analysis.activity import Activity, activity_of
from tapegen.analysis.effects import Effects, effects_of
from tapegen.analysis.finality import Finality, final_loads
from tapegen.analysis.scopes import Scopes, scopes_of
from tapegen.analysis.shapes import Shapes, shapes_of
from tapegen.ir import rewrite
from tapegen.ir.nodes import Function, Index, Stmt, Var
from tapegen.ir.types import Array, ListOf


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about one lowered program."""

    activity: Activity
    scopes: Scopes
    effects: Effects
    finality: Finality
    shapes: Shapes

    def is_final(self, stmt: Stmt, array: Var, index: tuple[Index, ...]) -> bool:
        """Whether the backward sweep may read `array[index]` instead of the value it had at `stmt`.

        A written array that a loop carries under changing names is never final: its name means another place in
        every trip.
        """
        if not isinstance(array.type, Array | ListOf):
            return True
        roots = self.effects.roots(array)
        for scope in self.scopes.at[stmt].chain():
            if scope.is_loop:
                for var in scope.carried:
                    if isinstance(var.type, Array | ListOf) and self.effects.roots(var) & roots:
                        inside = rewrite.statements((scope.header,)) if scope.header is not None else ()
                        if any(self.effects.writes.get(inner, frozenset()) & roots for inner in inside):
                            return False
        return self.finality.is_final(stmt, array, index)


def facts_of(function: Function, wrt: Iterable[Var], results: Iterable[Var]) -> Facts:
    """Analyse a lowered program for the derivative of `results` with respect to `wrt`."""
    scopes = scopes_of(function)
    return Facts(
        activity_of(function, wrt, results),
        scopes,
        effects_of(function),
        final_loads(function),
        shapes_of(function, scopes),
    )
