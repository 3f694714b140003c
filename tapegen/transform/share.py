"""Reads of the same element: `u[i] * u[i]` loads once, so that its derivative is `2.0 * u[i]` and records once."""

from __future__ import annotations

from collections.abc import Set

from tapegen.analysis.effects import Effects
from tapegen.ir import rewrite
from tapegen.ir.nodes import Assign, Block, Load, Stmt, Var
from tapegen.ir.types import Scalar


def share_loads(block: Block, effects: Effects, user_names: Set[str]) -> Block:
    """Let equal scalar loads between two writes share one value.

    Parameters
    ----------
    block : Block
        A lowered block.
    effects : Effects
        What its statements write.
    user_names : set of str
        Names of the user; their assignments are kept.
    """
    out: list[Stmt] = []
    known: dict[Load, Var] = {}
    same: dict[Var, Var] = {}
    for original in block:
        stmt = rewrite.substitute_block((original,), same)[0] if same else original
        inner = rewrite.blocks(stmt)
        if inner:
            stmt = rewrite.with_blocks(stmt, tuple(share_loads(part, effects, user_names) for part in inner))
        written = {var for part in rewrite.statements((original,)) for var in effects.writes.get(part, ())}
        assigned = {var for part in rewrite.statements((original,)) for var in rewrite.defines(part)}
        if isinstance(stmt, Assign) and isinstance(stmt.value, Load) and isinstance(stmt.value.type, Scalar):
            earlier = known.get(stmt.value)
            (target,) = stmt.targets
            if earlier is not None and target.name not in user_names and earlier.type == target.type:
                same[target] = earlier
                continue
            known[stmt.value] = target
        if written or assigned:
            known = {
                load: var
                for load, var in known.items()
                if not effects.roots(load.array) & written
                and (var not in assigned or var in _targets(stmt))
                and not (rewrite.free_vars(load) & assigned)
            }
        out.append(stmt)
    return tuple(out)


def _targets(stmt: Stmt) -> tuple[Var, ...]:
    return stmt.targets if isinstance(stmt, Assign) else ()
