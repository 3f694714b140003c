"""Index set splitting of loops that leave out one iteration: the iterations before and those after it.

In loops over pairs, `if i != j` leaves out the pair of an element with itself.  Where the counter of a loop around
takes the same values, the left-out iteration is one of the loop, and the loops before and after it need no test: they
take vector instructions.  Always legal: the iterations keep their order.

Before::

    def f(x: "f8[:]", y: "f8[:]"):
        for i in range(x.shape[0]):
            for j in range(x.shape[0]):
                if i != j:
                    y[i] += x[j]
        return y

After::

    def f(x, y):
        for i in range(x.shape[0]):
            for j in range(i):
                y[i] += x[j]
            for j in range(i + 1, x.shape[0]):
                y[i] += x[j]
        return y
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from tapegen.ir import traversal
from tapegen.ir.affine import plus
from tapegen.ir.nodes import Block, Call, Comment, Const, Expr, For, Function, If, Stmt, Var
from tapegen.loops.analysis.block_queries import leaves, read_after_loops
from tapegen.loops.analysis.dependence import elements_read

_LONG = 60  # statements of a body that is not copied
_MOST = 400  # statements that are copied in one function: they take time to compile

Ranges = Mapping[Var, tuple[Expr, Expr]]
"""The counters of loops, each with its least value and the one above its largest."""


def split_excluded_iterations(function: Function) -> Function:
    """The same program with loops before and after an iteration that does nothing."""
    if not any(isinstance(stmt, For) and _excluding(stmt) for stmt in traversal.statements(function.body)):
        return function
    return traversal.with_body(function, _Splitting(function).block(function.body, {}))


class _Splitting:
    def __init__(self, function: Function) -> None:
        self.read_later = read_after_loops(function.body)
        self.times = Counter(target for stmt in traversal.statements(function.body) for target in stmt.targets)
        self.times.update(function.params)
        self.budget = _MOST

    def block(self, block: Block, around: Ranges) -> Block:
        """A block inside of loops with these ranges."""
        out: list[Stmt] = []
        for stmt in block:
            inside = around
            if isinstance(stmt, For) and (ends := self._ends(stmt)) is not None:
                inside = {**around, stmt.target: ends}
            stmt = traversal.with_blocks(stmt, tuple([self.block(part, inside) for part in stmt.blocks]))
            out += self._split(stmt, around) if isinstance(stmt, For) else (stmt,)
        return tuple(out)

    def _ends(self, loop: For) -> tuple[Expr, Expr] | None:
        """The range of a counter, if it stays the same."""
        if loop.step not in (Const(1), Const(-1)) or loop.target in traversal.assigned_in(*loop.body):
            return None
        ends = (loop.start, loop.stop)
        if any(self.times[var] > 1 for end in ends for var in traversal.free_vars(end)):
            return None
        if any(elements_read(end) is None or elements_read(end) for end in ends):
            return None  # stores may change elements
        if loop.step == Const(1):
            return plus(loop.start, 0), plus(loop.stop, 0)
        return plus(loop.stop, 1), plus(loop.start, 1)

    def _split(self, loop: For, around: Ranges) -> tuple[Stmt, ...]:
        """The loops in place of one."""
        found = _excluding(loop)
        if found is None:
            return (loop,)
        counter, body = found
        count = len(traversal.statements(body))
        if loop.target in self.read_later or leaves(body) or count > min(_LONG, self.budget):
            return (loop,)
        if counter not in around or around[counter] != self._ends(loop):
            return (loop,)
        self.budget -= count
        if loop.step == Const(1):
            return replace(loop, stop=counter, body=body), replace(loop, start=plus(counter, 1), body=body)
        return replace(loop, stop=counter, body=body), replace(loop, start=plus(counter, -1), body=body)


def _excluding(loop: For) -> tuple[Var, Block] | None:
    """The variable whose value the counter must not have, and what the other iterations do."""
    match [stmt for stmt in loop.body if not isinstance(stmt, Comment)]:
        case [If(Call(operator.not_, (Call(operator.eq, (a, b)),)) | Call(operator.ne, (a, b)), body, ())]:
            pass
        case [If(Call(operator.eq, (a, b)), (), body)]:
            pass
        case _:
            return None
    if b == loop.target:
        a, b = b, a
    return (b, body) if a == loop.target and isinstance(b, Var) and b != a else None
