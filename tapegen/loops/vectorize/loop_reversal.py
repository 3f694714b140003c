"""Loop reversal: an innermost loop that counts down counts up.

Legal where no iteration accesses an element that another one writes; in a backward sweep, whose additions have no
prescribed order, all iterations may add to the same element or scalar (`iteration_order`).  It pays because only
loops that count up are fused, and LLVM prefers them.

Before::

    def f(x: "f8[:]", y: "f8[:]"):
        for i in range(x.shape[0] - 1, -1, -1):
            y[i] = 2.0 * x[i]
        return y

After::

    def f(x, y):
        for i in range(x.shape[0]):
            y[i] = 2.0 * x[i]
        return y
"""

from __future__ import annotations

from dataclasses import replace

from tapegen.ir import traversal
from tapegen.ir.affine import plus
from tapegen.ir.nodes import Const, For, Function, Stmt
from tapegen.loops.analysis.dependence import LoopNest
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.iteration_order import IterationOrderPass


def reverse_loops(function: Function) -> Function:
    """The same program with innermost loops that count up where that is legal."""
    loops = (stmt for stmt in traversal.statements(function.body) if isinstance(stmt, For))
    if all(loop.step != Const(-1) for loop in loops):
        return function
    return traversal.with_body(function, _Reversal(function).block(function.body))


class _Reversal(IterationOrderPass):
    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loop, counting up if that is legal."""
        return [reversed_loop(nest.stmt) if self.order(nest) == "reversible" else nest.stmt]


def reversed_loop(loop: For) -> For:
    """The iterations of a loop that counts down, counted up."""
    return replace(loop, start=plus(loop.stop, 1), stop=plus(loop.start, 1), step=Const(1))
