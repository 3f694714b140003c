"""Queries about blocks: the variables they use, whether their ends are reached, what is read outside of loops."""

from __future__ import annotations

from tapegen.ir import traversal
from tapegen.ir.names import BACKWARD
from tapegen.ir.nodes import (
    Block,
    Break,
    Comment,
    Continue,
    For,
    Function,
    If,
    Raise,
    Return,
    Var,
    While,
)


def names_in(function: Function) -> set[str]:
    """The variables that a function uses."""
    names = {param.name for param in function.params} | {name for name, _ in function.globals} | {function.name}
    return names | {var.name for var in traversal.assigned_in(*function.body)}


def has_backward_sweep(function: Function) -> bool:
    """Whether a function is a backward sweep, or ends with one."""
    return function.backward or any(isinstance(stmt, Comment) and stmt.text == BACKWARD for stmt in function.body)


def escapes(block: Block) -> bool:
    """Whether the end of a block is never reached."""
    last = next((stmt for stmt in reversed(block) if not isinstance(stmt, Comment)), None)
    if isinstance(last, If):
        return bool(last.orelse) and escapes(last.body) and escapes(last.orelse)
    return isinstance(last, (Break, Continue, Raise, Return))


def read_after_loops(block: Block) -> set[Var]:
    """Counters that are read outside their loops."""
    found: set[Var] = set()
    for stmt in block:
        nested = stmt.blocks
        if not nested or For not in map(type, traversal.statements((stmt,))):
            found |= traversal.reads(stmt)
            continue
        inside = set().union(*map(read_after_loops, nested))
        if isinstance(stmt, For):
            inside.discard(stmt.target)
        found.update(inside, *map(traversal.free_vars, stmt.headers))
    return found


@traversal.once
def read_elsewhere(function: Function) -> set[Var]:
    """Variables that are read somewhere without a previous assignment in the same block or one around it."""
    found: set[Var] = set()

    def visit(block: Block, known: set[Var]) -> None:
        for stmt in block:
            assigned = traversal.assigns(stmt)
            before = known - assigned if isinstance(stmt, While) else known
            nested = stmt.blocks
            if not nested:
                found.update(traversal.reads(stmt) - before)
                known |= assigned
                continue
            for part in stmt.headers:
                found.update(traversal.free_vars(part) - before)
            for each in nested:
                inner = known - assigned if isinstance(stmt, (For, While)) else set(known)
                visit(each, inner | ({stmt.target} if isinstance(stmt, For) else set()))
            known -= assigned

    visit(function.body, set())
    return found


def leaves(block: Block) -> bool:
    """Whether a loop's body contains a Break or Continue of the loop itself."""
    for stmt in block:
        if isinstance(stmt, (Break, Continue)):
            return True
        if isinstance(stmt, If) and (leaves(stmt.body) or leaves(stmt.orelse)):
            return True
    return False
