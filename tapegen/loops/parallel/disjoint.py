"""Elements that two iterations of a loop cannot both access: a symbolic dependence test.

The variables of a second iteration have names of their own.  At two accesses the facts of both iterations hold, and
that the second counter is behind the first; the elements are different if the indices differ on some axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from tapegen.ir import traversal
from tapegen.ir.affine import Affine, is_int
from tapegen.ir.nodes import Block, Const, For, If, Slice, Stmt, Var, While
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds

_MOST = 40
"""Pairs of accesses beyond which a test takes too long."""


@dataclass(frozen=True)
class Place:
    """Where an iteration accesses an array: the statement, and the index as it stands there."""

    stmt: Stmt
    index: tuple[Any, ...]
    writes: bool


class Iterations:
    """Two iterations of one loop.

    Parameters
    ----------
    loop : For
        The loop.
    facts : SymbolicBounds
        The facts in any of its iterations.
    stored : set of Var
        The arrays that iterations write, whose elements are not the same in both.
    """

    def __init__(self, loop: For, facts: SymbolicBounds, stored: Set[Var]) -> None:
        self.loop, self.facts, self.stored = loop, facts, stored
        varying = {loop.target, *traversal.assigned_in(*loop.body)}
        self.later = {var: Var(f"?{var.name}", var.type) for var in varying}

    def never_meet(self, places: Sequence[Place]) -> bool:
        """Whether no iteration accesses an element that another one writes."""
        pairs = [(a, b) for a, b in itertools.product(dict.fromkeys(places), repeat=2) if a.writes or b.writes]
        return len(pairs) <= _MOST and all(itertools.starmap(self._are_apart, pairs))

    def _are_apart(self, a: Place, b: Place) -> bool:
        """Whether the element of an access is not that of another one in a later iteration."""
        loop, step = self.loop, self.loop.step
        assert isinstance(step, Const) and isinstance(step.value, int)
        (second,) = traversal.rename_block((loop,), self.later)
        assert isinstance(second, For)
        facts = self.facts.copy()
        facts.assume_counter(second)
        gap = Affine.atom(second.target) - Affine.atom(loop.target)
        facts.assume((gap if step.value > 0 else -gap) - abs(step.value))
        _advance(facts, loop.body, a.stmt, lambda stmt: stmt)
        _advance(facts, loop.body, b.stmt, self._renamed)
        for x, y in zip(a.index, b.index, strict=False):
            if self._is_known(x) and self._is_known(y):
                distance = facts.form(x) - facts.form(self._of_later(y))
                if facts.nonnegative(distance - 1) or facts.nonnegative(-distance - 1):
                    return True
        return False

    def _is_known(self, item: Any) -> bool:
        if isinstance(item, Slice) or not is_int(item):
            return False
        return all(load.array not in self.stored for load in traversal.loads(item))

    def _renamed(self, stmt: Stmt) -> Stmt:
        (renamed,) = traversal.rename_block((stmt,), self.later)
        return renamed

    def _of_later(self, item: Any) -> Any:
        return traversal.substitute(item, self.later)


def _advance(facts: SymbolicBounds, block: Block, end: Stmt, renamed: Callable[[Stmt], Stmt]) -> bool:
    """Add the facts on the way through a block to a statement; whether it is there."""
    for stmt in block:
        if stmt is end:
            return True
        same: Any = renamed(stmt)
        if end not in traversal.statements((stmt,)):
            facts.learn(same)
            continue
        if isinstance(stmt, If):
            for side, holds in zip(stmt.blocks, (True, False), strict=True):
                if end in traversal.statements(side):
                    facts.assume_test(same.test, holds)
                    return _advance(facts, side, end, renamed)
        facts.forget(traversal.assigns(same))
        if isinstance(stmt, For):
            facts.assume_counter(same)
        assert isinstance(stmt, (For, While))
        return _advance(facts, stmt.body, end, renamed)
    return False
