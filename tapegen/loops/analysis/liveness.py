"""Liveness of variables around a loop: what it reads from before, and what is read after it."""

from __future__ import annotations

from collections.abc import Sequence

from tapegen.analysis.memory_access import is_place, sources
from tapegen.ir import traversal
from tapegen.ir.nodes import Assign, Block, Call, Effect, For, If, Stmt, Var, While
from tapegen.loops.analysis.block_queries import escapes

Surroundings = Sequence[tuple[Block, Block, For | While | None]]
"""For each block around a statement, the innermost first: what comes before it, what follows, whose body it is."""


def exposed_reads(block: Block) -> set[Var]:
    """Variables that a block may read before it has assigned them."""
    found: set[Var] = set()
    _expose(block, set(), found)
    return found


def read_after(around: Surroundings) -> set[Var]:
    """Variables that may be read after a statement before they are assigned again."""
    found: set[Var] = set()
    known: set[Var] = set()
    for _, rest, loop in around:
        known = _expose(rest, known, found)
        if loop is not None:
            _expose_header(loop, known, found)
            _expose(loop.body, set(known), found)
    return found


def _expose(block: Block, known: set[Var], found: set[Var]) -> set[Var]:
    """Add the exposed reads of a block, and return what is assigned at its end."""
    for stmt in block:
        _expose_header(stmt, known, found)
        if isinstance(stmt, (For, While)):
            _expose(stmt.body, known | set(stmt.targets), found)
        elif isinstance(stmt, If):
            sides = (stmt.body, stmt.orelse)
            ends = [_expose(side, set(known), found) for side in sides]
            reached = [end for end, side in zip(ends, sides, strict=True) if not escapes(side)]
            known = set.intersection(*reached) if reached else known
        else:
            known = known | set(stmt.targets)
    return known


def _expose_header(stmt: Stmt, known: set[Var], found: set[Var]) -> None:
    found.update(*(traversal.free_vars(header) - known for header in stmt.headers))


def is_only_name(array: Var, around: Surroundings) -> bool:
    """Whether no other variable shares memory with an array at a statement: it was made, and never passed on."""
    for before, _, loop in around:
        for stmt in reversed(before):
            if isinstance(stmt, Assign) and array in stmt.targets:
                return isinstance(stmt.value, Call) and not any(sources(stmt.value))
            if _passes_on(stmt, array):
                return False
        if loop is not None and any(_passes_on(stmt, array) for stmt in loop.body):
            return False
    return False


def _passes_on(stmt: Stmt, array: Var) -> bool:
    """Whether a statement may give an array another name, or the name to another array."""
    if array not in traversal.reads(stmt) and array not in traversal.assigns(stmt):
        return False
    for inner in traversal.statements((stmt,)):
        if array in inner.targets:
            return True
        if isinstance(inner, Effect) and any(array in traversal.free_vars(header) for header in inner.headers):
            return True
        if isinstance(inner, Assign) and any(map(is_place, inner.targets)) and array in sources(inner.value):
            return True
    return False
