"""A loop that counts down counts up if no iteration accesses what another one writes."""

from __future__ import annotations

from dataclasses import replace

from tapegen.ir.nodes import Const, For, Function, Stmt
from tapegen.loops.analysis.affine import plus
from tapegen.loops.analysis.dependence import LoopNest
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.iteration_order import IterationOrderPass


def reverse_loops(function: Function) -> Function:
    """The same program with innermost loops that count up where they may."""
    return replace(function, body=_Reversal(function).block(function.body))


class _Reversal(IterationOrderPass):
    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loop, upwards if it may be."""
        return [_reversed(nest.stmt) if self.order(nest) == "reversible" else nest.stmt]


def _reversed(loop: For) -> For:
    return replace(loop, start=plus(loop.stop, 1), stop=plus(loop.start, 1), step=Const(1))
