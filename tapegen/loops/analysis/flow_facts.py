"""Flow facts: what is known at each point of a program, computed on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegen.ir.nodes import For, If, Stmt, While
from tapegen.ir.traversal import assigns
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds


class FlowFacts:
    """Facts at a point of a program.

    A pass reports the statements it visits; most points are never queried, and cost next to nothing.

    Parameters
    ----------
    outer : FlowFacts, optional
        The facts before the block; they do not change while the block is visited.
    """

    def __init__(self, outer: FlowFacts | None = None) -> None:
        self._outer = outer
        self._facts: SymbolicBounds | None = None
        self._passed: list[tuple[Callable[..., None], tuple[Any, ...]]] = []  # since the last query

    @property
    def facts(self) -> SymbolicBounds:
        """The facts at this point."""
        if self._facts is None:
            self._facts = SymbolicBounds() if self._outer is None else self._outer.facts.copy()
        for learn, arguments in self._passed:
            learn(self._facts, *arguments)
        self._passed.clear()
        return self._facts

    def learn(self, stmt: Stmt) -> None:
        """Pass over a statement."""
        self._passed.append((SymbolicBounds.learn, (stmt,)))

    def body(self, loop: For | While) -> FlowFacts:
        """The facts in any iteration of a loop; what the loop assigns is unknown from here on."""
        self._passed.append((SymbolicBounds.forget, (assigns(loop),)))
        inner = FlowFacts(self)
        if isinstance(loop, For):
            inner._passed.append((SymbolicBounds.assume_counter, (loop,)))
        return inner

    def sides(self, stmt: If) -> tuple[FlowFacts, FlowFacts]:
        """The facts in the two blocks of a branch."""
        sides = FlowFacts(self), FlowFacts(self)
        for inner, holds in zip(sides, (True, False), strict=True):
            inner._passed.append((SymbolicBounds.assume_test, (stmt.test, holds)))
        return sides
