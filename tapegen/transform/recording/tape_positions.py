"""Positions on growing tapes: where each iteration of a loop that may run in parallel ends on them.

A growing tape is a stack: where the backward sweep of an iteration begins depends on all later iterations.  With its
position recorded an iteration depends on no other one::

    for i in range(n):                        for i in range(n):
        while ...:                                while ...:
            top += 1                                  top += 1
            u_tape[top - 1] = u                       u_tape[top - 1] = u
                                      ->          top_tape[i] = top
    for i in range(n - 1, -1, -1):            for i in range(n - 1, -1, -1):
                                                  top = top_tape[i]
        for trip in ...:                          for trip in ...:
            u = u_tape[top - 1]                       u = u_tape[top - 1]
            top -= 1                                  top -= 1
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from tapegen.analysis.scopes import Scope
from tapegen.ir import traversal
from tapegen.ir.nodes import Assign, Block, Call, Const, Continue, For, If, Load, Stmt, Store, Var, While
from tapegen.ir.types import INT, Scalar
from tapegen.transform.autodiff.reverse import Sweeps
from tapegen.transform.recording.decisions import Tape
from tapegen.transform.recording.loop_order import loops_of, reversed_loops


def may_be_independent(scope: Scope) -> bool:
    """Whether iterations of a loop hand over nothing but sums, as far as variables tell."""
    loop = scope.header
    if not isinstance(loop, For) or not isinstance(loop.step, Const) or _continues(loop.body):
        return False
    inside = traversal.statements(loop.body)
    return all(isinstance(var.type, Scalar) and _is_sum(var, inside) for var in scope.carried)


def _is_sum(var: Var, inside: Sequence[Stmt]) -> bool:
    """Whether statements only add to a variable."""
    sums = {var}
    for stmt in inside:
        match stmt:
            case Assign((target,), Var() as first) | Assign(
                (target,), Call(operator.add | operator.sub, (Var() as first, _))
            ) if first in sums:
                sums.add(target)
            case _ if any(not sums.isdisjoint(traversal.free_vars(header)) for header in stmt.headers):
                return False
    return True


def _continues(block: Block) -> bool:
    """Whether iterations may end early."""
    return any(
        isinstance(stmt, Continue) or (isinstance(stmt, If) and any(map(_continues, stmt.blocks))) for stmt in block
    )


def with_positions(
    forward: Block, backward: Block, tapes: Mapping[Stmt, Sequence[Tape]], program: Block, sweeps: Sweeps
) -> tuple[Block, Block]:
    """Both sweeps, tapes laid out, with the positions of the loops in `tapes`."""
    ahead = {stmt: tapes.get(loop, ()) for stmt, loop in zip(loops_of(forward), loops_of(program), strict=True)}
    undone = {position: tapes.get(loop, ()) for loop, position in reversed_loops(sweeps).items()}
    back = {stmt: undone.get(k, ()) for k, stmt in enumerate(loops_of(backward))}

    def ending(stmt: Stmt) -> Stmt:
        kept = ahead[stmt] if isinstance(stmt, (For, While)) else ()
        return _with_body(stmt, ending, after=[Store(tape.store, _index(tape), tape.var) for tape in kept])

    def beginning(stmt: Stmt) -> Stmt:
        kept = back[stmt] if isinstance(stmt, (For, While)) else ()
        found = [Assign((tape.var,), Load(tape.store, _index(tape), INT)) for tape in kept]
        return _with_body(stmt, beginning, before=found)

    return tuple(map(ending, forward)), tuple(map(beginning, backward))


def _index(tape: Tape) -> tuple[Any, ...]:
    assert tape.index is not None
    return tape.index


def _with_body(stmt: Stmt, inner: Any, before: Sequence[Stmt] = (), after: Sequence[Stmt] = ()) -> Stmt:
    if not stmt.blocks:
        return stmt
    blocks = [tuple(map(inner, block)) for block in stmt.blocks]
    return traversal.with_blocks(stmt, ((*before, *blocks[0], *after), *blocks[1:]))
