"""The loops of both sweeps in the order of the program, by which passes find them again."""

from __future__ import annotations

from tapegen.ir import traversal
from tapegen.ir.nodes import Block, For, Stmt, While
from tapegen.transform.autodiff.reverse import Sweeps


def loops_of(block: Block) -> list[For | While]:
    """The loops of a block, nested ones included, in order of the program."""
    return [stmt for stmt in traversal.statements(block) if isinstance(stmt, (For, While))]


def reversed_loops(sweeps: Sweeps) -> dict[Stmt, int]:
    """The loops that the backward sweep reverses, with their positions among its loops."""
    found: dict[Stmt, int] = {}
    for position, stmt in enumerate(loops_of(sweeps.backward)):
        scopes = sweeps.scopes_of.get(stmt)
        if scopes is not None and scopes[0].header is not None:
            found[scopes[0].header] = position
    return found
