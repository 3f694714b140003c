"""What is known along a walk over a program, worked out where somebody asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegen.ir.nodes import For, If, Stmt, While
from tapegen.ir.traversal import assigns
from tapegen.loops.analysis.symbolic_bounds import Facts


class Known:
    """Facts at a place of a program.

    A walk tells what it passes; nobody may ask about most places, and then it costs next to nothing.

    Parameters
    ----------
    outer : Known, optional
        What is known in front of the block; it learns nothing while the block is walked over.
    """

    def __init__(self, outer: Known | None = None) -> None:
        self._outer = outer
        self._facts: Facts | None = None
        self._passed: list[tuple[Callable[..., None], tuple[Any, ...]]] = []  # since somebody asked

    @property
    def facts(self) -> Facts:
        """What holds here."""
        if self._facts is None:
            self._facts = Facts() if self._outer is None else self._outer.facts.copy()
        for learn, arguments in self._passed:
            learn(self._facts, *arguments)
        self._passed.clear()
        return self._facts

    def learn(self, stmt: Stmt) -> None:
        """Pass a statement."""
        self._passed.append((Facts.learn, (stmt,)))

    def body(self, loop: For | While) -> Known:
        """What is known on any trip of a loop; what it assigns is not known from here on."""
        self._passed.append((Facts.forget, (assigns(loop),)))
        inner = Known(self)
        if isinstance(loop, For):
            inner._passed.append((Facts.assume_counter, (loop,)))
        return inner

    def sides(self, stmt: If) -> tuple[Known, Known]:
        """What is known in the two blocks of a branch."""
        sides = Known(self), Known(self)
        for inner, holds in zip(sides, (True, False), strict=True):
            inner._passed.append((Facts.assume_test, (stmt.test, holds)))
        return sides
