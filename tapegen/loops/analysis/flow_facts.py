"""What is known along a walk over a program, worked out where somebody asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegen.ir.nodes import For, If, Stmt, While
from tapegen.ir.traversal import assigns
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds


class FlowFacts:
    """Facts at a place of a program.

    A walk tells what it passes; nobody may ask about most places, and then it costs next to nothing.

    Parameters
    ----------
    outer : FlowFacts, optional
        What is known in front of the block; it learns nothing while the block is walked over.
    """

    def __init__(self, outer: FlowFacts | None = None) -> None:
        self._outer = outer
        self._facts: SymbolicBounds | None = None
        self._passed: list[tuple[Callable[..., None], tuple[Any, ...]]] = []  # since somebody asked

    @property
    def facts(self) -> SymbolicBounds:
        """What holds here."""
        if self._facts is None:
            self._facts = SymbolicBounds() if self._outer is None else self._outer.facts.copy()
        for learn, arguments in self._passed:
            learn(self._facts, *arguments)
        self._passed.clear()
        return self._facts

    def learn(self, stmt: Stmt) -> None:
        """Pass a statement."""
        self._passed.append((SymbolicBounds.learn, (stmt,)))

    def body(self, loop: For | While) -> FlowFacts:
        """What is known in any iteration of a loop; what it assigns is not known from here on."""
        self._passed.append((SymbolicBounds.forget, (assigns(loop),)))
        inner = FlowFacts(self)
        if isinstance(loop, For):
            inner._passed.append((SymbolicBounds.assume_counter, (loop,)))
        return inner

    def sides(self, stmt: If) -> tuple[FlowFacts, FlowFacts]:
        """What is known in the two blocks of a branch."""
        sides = FlowFacts(self), FlowFacts(self)
        for inner, holds in zip(sides, (True, False), strict=True):
            inner._passed.append((SymbolicBounds.assume_test, (stmt.test, holds)))
        return sides
