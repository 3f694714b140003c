"""Argmax-like reduction loops, which select one of their candidates: `for k in ...: if c[k] > best: best = c[k]`.

Only the iteration whose candidate was selected passes a derivative on, so the forward sweep saves its loop index and
the backward sweep reverses that iteration alone.
"""

from __future__ import annotations

import operator
from collections.abc import Set
from dataclasses import dataclass, replace

from tapegen.analysis.scopes import Scope
from tapegen.ir import builders, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Const,
    Continue,
    Effect,
    Expr,
    For,
    If,
    Load,
    Raise,
    Stmt,
    Var,
    While,
)
from tapegen.ir.types import INT, Array, Scalar
from tapegen.transform.analyses import Facts


@dataclass(frozen=True, slots=True)
class Selection:
    """What is saved of a selection loop.

    Attributes
    ----------
    winner : Var
        The value of the loop variable in the last iteration that replaced the selected value.
    nobody : Expr
        What `winner` is when no iteration did: a value that the loop variable never has.
    trip : Block
        The statements of such an iteration, with the branch that it takes inlined.
    """

    winner: Var
    nobody: Expr
    trip: Block


def selections(block: Block, facts: Facts, names: NameSupply) -> tuple[Block, dict[Stmt, Selection]]:
    """Let the selection loops of a block save the index of the selected iteration.

    Parameters
    ----------
    block : Block
        The body of a function.
    facts : Facts
        Its analyses.
    names : NameSupply
        Supply of fresh names.

    Returns
    -------
    block, selections
        The new body, and what is saved of its loops.
    """
    found: dict[Stmt, Selection] = {}
    return _remembered(block, facts, names, found), found


def _remembered(block: Block, facts: Facts, names: NameSupply, found: dict[Stmt, Selection]) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        branch = _selecting(stmt, facts) if isinstance(stmt, For) else None
        if branch is None:
            inner = tuple(_remembered(part, facts, names, found) for part in stmt.blocks)
            changed = any(a is not b for a, b in zip(inner, stmt.blocks, strict=True))
            out.append(traversal.with_blocks(stmt, inner) if changed else stmt)
            continue
        assert isinstance(stmt, For) and isinstance(stmt.step, Const) and isinstance(stmt.step.value, int)
        winner = Var(names.fresh(f"{stmt.target.name}_best"), INT)
        now = Var(names.fresh(winner.name), INT)
        nobody = builders.int_add(stmt.start, Const(-stmt.step.value))
        wins, stays = Assign((now,), stmt.target, stmt.origin), Assign((now,), winner, stmt.origin)
        first = branch.wins == 0
        body = (*branch.stmt.body, wins if first else stays)
        orelse = (*branch.stmt.orelse, stays if first else wins)
        test = replace(branch.stmt, body=body, orelse=orelse)
        new = tuple(test if part is branch.stmt else part for part in stmt.body)
        loop = replace(stmt, body=(*new, Assign((winner,), now, stmt.origin)))
        taken = branch.stmt.body if first else branch.stmt.orelse
        trip = tuple(part for one in stmt.body for part in (taken if one is branch.stmt else (one,)))
        found[loop] = Selection(winner, nobody, trip)
        out += [Assign((winner,), nobody, stmt.origin), loop]
    return tuple(out) if len(out) != len(block) or any(a is not b for a, b in zip(out, block, strict=True)) else block


@dataclass(frozen=True, slots=True)
class _Branch:
    stmt: If
    wins: int  # which side replaces the selected value


def _selecting(loop: For, facts: Facts) -> _Branch | None:
    """The If of a loop that keeps the selected value or replaces it by a candidate."""
    if not isinstance(loop.step, Const) or not loop.step.value or traversal.loads(loop.start):
        return None
    active, scope = facts.activity.active, facts.scopes.body[loop]
    carried = [var for var in scope.carried if var in active]
    inner = list(traversal.statements(loop.body))
    if len(carried) != 1 or not isinstance(carried[0].type, Scalar):
        return None
    if any(isinstance(stmt, (For, While, Break, Continue, Effect)) for stmt in inner):
        return None
    (selected,) = carried
    latches = [stmt for stmt in inner if isinstance(stmt, Assign) and selected in stmt.targets]
    if len(latches) != 1 or len(latches[0].targets) != 1 or latches[0] not in loop.body:
        return None
    joined = latches[0].value
    if not isinstance(joined, Var):
        return None
    for stmt in loop.body:
        if isinstance(stmt, If) and (branch := _replacing(stmt, selected, joined)) is not None:
            flow = {*latches, *branch.stmt.body, *branch.stmt.orelse}
            others = [part for part in inner if part not in flow and _writes_active(part, active)]
            own = [part for part in flow if part not in latches and _writes_active(part, active)]
            if (
                all(part in loop.body and _passes_on(part, {selected, joined}, loop, scope, facts) for part in others)
                and len(own) == 2
                and all(_passes_on(part, {joined}, loop, scope, facts) for part in own)
            ):
                return branch
    return None


def _replacing(stmt: If, selected: Var, joined: Var) -> _Branch | None:
    """An If of which one branch keeps the selected value and the other takes a candidate."""
    for wins, (taken, kept) in enumerate(((stmt.body, stmt.orelse), (stmt.orelse, stmt.body))):
        if any(not isinstance(part, (Assign, Raise)) for part in (*taken, *kept)):
            return None
        gives = [part.value for part in kept if isinstance(part, Assign) and part.targets == (joined,)]
        takes = [part.value for part in taken if isinstance(part, Assign) and part.targets == (joined,)]
        if (
            gives == [selected]
            and len(takes) == 1
            and isinstance(takes[0], (Var, Load, Const))
            and takes[0] != selected
        ):
            return _Branch(stmt, wins)
    return None


def _writes_active(stmt: Stmt, active: Set[Var]) -> bool:
    if isinstance(stmt, Assign):
        return any(target in active for target in stmt.targets)
    return not isinstance(stmt, (If, Raise))


def _passes_on(stmt: Stmt, not_read: Set[Var], loop: For, scope: Scope, facts: Facts) -> bool:
    """Whether a statement is linear and its adjoint reads nothing that the loop computes but its variable."""
    if not isinstance(stmt, Assign) or len(stmt.targets) != 1 or isinstance(stmt.targets[0].type, Array):
        return False
    value = stmt.value
    if traversal.free_vars(value) & not_read:
        return False
    if isinstance(value, Load):
        index = [var for item in value.index for var in traversal.free_vars(item)]
        return (
            not any(traversal.loads(item) for item in value.index)
            and all(
                var == loop.target or not facts.scopes.owner[var].within(scope)
                for var in index
                if var in facts.scopes.owner
            )
            and not any(var in scope.carried for var in index)
        )
    if isinstance(value, Call):
        return value.func in (operator.add, operator.sub, operator.neg) and all(
            isinstance(arg, Const) or isinstance(arg.type, Scalar) for arg in value.args
        )
    return isinstance(value, (Var, Const))
