"""Hoisting of invariant loads: an element that an innermost loop only reads is loaded once, before the loop.

Legal where no store of the loop can alias that element, and the element has been accessed before, so that reading it is
within bounds even if there is no iteration.  LLVM cannot know that no store aliases it.

Before::

    def f(x: "f8[:]", y: "f8[:]"):
        x[0] = 1.0
        for i in range(1, x.shape[0]):
            first = x[0]
            x[i] = first * y[i]
        return x

After::

    def f(x, y):
        x[0] = 1.0
        first = x[0]
        for i in range(1, x.shape[0]):
            x[i] = first * y[i]
        return x
"""

from __future__ import annotations

import functools
from collections import Counter

from tapegen.ir import traversal
from tapegen.ir.nodes import Assign, Function, Stmt, Var
from tapegen.loops.analysis.dependence import LoopNest, in_loops
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.loop_visitor import InnermostLoopPass, already_accessed


def hoist_invariant_loads(function: Function) -> Function:
    """The same program with invariant elements loaded before innermost loops."""
    return traversal.with_body(function, _Hoisting(function).block(function.body))


class _Hoisting(InnermostLoopPass):
    @functools.cached_property
    def assigned(self) -> Counter[Var]:
        """The number of assignments of each variable."""
        return Counter([var for stmt in traversal.statements(self.function.body) for var in stmt.targets])

    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The statements that are hoisted out of a loop, and the loop."""
        if nest.checks:
            return [nest.stmt]
        lifted: list[Stmt] = []
        for stmt in nest.body:
            if isinstance(stmt, Assign) and self._lasts(stmt, nest, [*before, *lifted]):
                lifted.append(stmt)
                rest = in_loops(nest.loops, tuple(each for each in nest.body if each is not stmt))
                assert rest is not None
                nest = rest
        return [*lifted, nest.stmt]

    def _lasts(self, stmt: Assign, nest: LoopNest, before: list[Stmt]) -> bool:
        """Whether a value of elements is invariant, and may be computed where the loop makes no iteration."""
        loads = traversal.loads(stmt.value)
        (target,) = stmt.targets
        varying = {*nest.counters, *nest.assigned}
        if not loads or self.assigned[target] > 1 or traversal.free_vars(stmt.value) & varying:
            return False
        writes = [access for access in nest.accesses if access.writes]
        return all(
            already_accessed(load, before)
            and not any(self.may_alias(load.array, load.index, write) for write in writes)
            for load in loads
        )
