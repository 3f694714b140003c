"""Cleanup pipeline of a sweep: dead code, copies, single-use temporaries and redundant variables are removed.

All passes work on one sweep at a time; `live_out` lists the variables that are read after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import BACKWARD, FORWARD
from tapegen.ir.nodes import (
    Block,
    Call,
    Comment,
    Expr,
    For,
    If,
    Raise,
    Stmt,
    Store,
    Var,
    While,
)
from tapegen.rules.registry import rule_of
from tapegen.transform.simplify.copy_propagation import CopyPropagation
from tapegen.transform.simplify.dead_code import Aliases, Groups, drop_trailing, eliminate_dead_code, merge_stores

ROUNDS = 8
"""How often each pass may run over a sweep."""


def clean_up(
    block: Block,
    live_out: Set[Var],
    user_names: Set[str],
    keep: Set[Var] = frozenset(),
    shared: Groups = (),
) -> Block:
    """Simplify one sweep.

    Parameters
    ----------
    block : Block
        The statements of the sweep.
    live_out : set of Var
        Vars that are read after the sweep.
    user_names : set of str
        Variables of the user; their assignments stay visible.
    keep : set of Var
        Values that are computed even if nothing reads them: the user's program may raise there.
    shared : tuple of frozenset of Var
        Arrays from outside of the sweep that may share memory with each other.
    """
    passes: list[Callable[[Block, Aliases], Block]] = [
        lambda block, aliases: eliminate_dead_code(block, live_out, keep, aliases),
        lambda block, aliases: block if keep else drop_trailing(block, live_out, aliases),
        merge_stores,
        lambda block, aliases: CopyPropagation(block, live_out, user_names, aliases).run(),
    ]
    aliases = Aliases(block, shared)
    turn = idle = 0  # `idle` passes in a row have found nothing to do
    while idle < len(passes) and turn < ROUNDS * len(passes):
        one = passes[turn % len(passes)]
        if (new := one(block, aliases)) is block:
            idle += 1
        else:
            idle = 1 if one is passes[0] else 0  # nothing new is dead
            block, aliases = new, Aliases(new, shared)
        turn += 1
    return _drop_dangling_comments(_drop_redundant_copies(block, aliases))


# ---- copies ----------------------------------------------------------------------------------------------------------


def _drop_redundant_copies(block: Block, aliases: Aliases) -> Block:
    """Read an array in place of its copy where only the values matter: as an operand, or stored into other memory."""

    def plain(node: Expr) -> Expr:
        if not isinstance(node, Call) or not any(map(_is_copy, node.args)) or not _makes_values(node.func):
            return node
        return replace(node, args=tuple(map(_copied, node.args)))

    def change(stmt: Stmt) -> Stmt:
        if np.copy not in traversal.calls(stmt):
            return stmt
        new = traversal.map_headers(stmt, lambda header: traversal.map_expr(header, plain))
        if isinstance(new, Store) and _is_copy(new.value):
            source = _copied(new.value)
            places = {aliases.root(var) for var in traversal.free_vars(source)}
            if aliases.is_local(new.array) and aliases.root(new.array) not in places:
                new = replace(new, value=source)
        return traversal.with_blocks(new, tuple(_drop_redundant_copies(part, aliases) for part in new.blocks))

    return traversal.map_block(block, change)


def _makes_values(func: Callable[..., Any]) -> bool:
    """Whether a function is element-wise or a sum: its result shares no memory with its operands."""
    rule = rule_of(func)
    elementwise = isinstance(func, np.ufunc) or (rule is not None and rule.kind == "partials")
    return elementwise or func in (np.sum, intrinsics.strong_mul, intrinsics.guarded)


def _is_copy(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.func is np.copy


def _copied(expr: Expr) -> Expr:
    """The source of a copy; other expressions unchanged."""
    return expr.args[0] if isinstance(expr, Call) and expr.func is np.copy else expr


# ---- comments --------------------------------------------------------------------------------------------------------


_HEADS = (FORWARD, BACKWARD)


def _drop_dangling_comments(block: Block, above: str | None = None) -> Block:
    """Drop comments with no statement after them, and those that repeat the previous one, also in nested blocks."""
    out: list[Stmt] = []
    for k, stmt in enumerate(block):
        if isinstance(stmt, Comment):
            following = block[k + 1] if k + 1 < len(block) else None
            is_head = stmt.text in _HEADS  # which may stand above a comment
            if following is None or stmt.text == above:
                continue
            if isinstance(following, Comment) and (not is_head or following.text in _HEADS):
                continue
            above = stmt.text
        elif isinstance(stmt, (If, For, While)):
            stmt = traversal.with_blocks(stmt, tuple(_drop_dangling_comments(inner, above) for inner in stmt.blocks))
            if any(isinstance(inner, Comment) for inner in traversal.statements((stmt,))):
                above = None
        out.append(stmt)
    return tuple(out)


def resolve_primal_as(block: Block) -> Block:
    """Replace `primal_as(value, formula)` by the value."""

    def change(node: Expr) -> Expr:
        return node.args[0] if isinstance(node, Call) and node.func is intrinsics.primal_as else node

    def resolved(stmt: Stmt) -> Stmt:
        if intrinsics.primal_as not in traversal.calls(stmt):
            return stmt
        new = traversal.map_headers(stmt, lambda header: traversal.map_expr(header, change))
        return traversal.with_blocks(new, tuple(resolve_primal_as(inner) for inner in stmt.blocks))

    return traversal.map_block(block, resolved)


def reads_of(block: Iterable[Stmt]) -> set[Var]:
    """Vars that a block reads before (or without) assigning them itself."""
    found: set[Var] = set()
    _collect(tuple(block), set(), found)
    return found


def always_assigned(block: Block) -> set[Var]:
    """Vars that a block assigns on every path."""
    return _collect(block, set(), set())


def _collect(block: Block, assigned: set[Var], found: set[Var]) -> set[Var]:
    assigned = set(assigned)
    for stmt in block:
        if isinstance(stmt, (Raise, Comment)):
            continue
        inner = stmt.blocks
        if inner:
            for header in stmt.headers:
                found |= traversal.free_vars(header) - assigned
            inside = assigned | set(stmt.targets)
            ends = [_collect(part, inside, found) for part in inner]
            if isinstance(stmt, If):
                assigned |= ends[0] & ends[1]
        else:
            found |= traversal.reads(stmt) - assigned
            assigned |= traversal.assigns(stmt)
    return assigned
