"""What makes sweeps readable (and small): drop what is dead, move copies, nest single-use temporaries, merge names.

All passes look at one sweep at a time; `live_out` names what is read after it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Set
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.ir import ops, rewrite
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Comment,
    Const,
    Effect,
    Expr,
    For,
    If,
    Load,
    Raise,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import Array, ListOf, Scalar
from tapegen.rules.registry import rule_of
from tapegen.transform.dead import Aliases, drop_dead, joined_stores, without_last

NEST_LIMIT = 16
"""Nodes of an expression that a temporary is nested into."""

STATEMENT_LIMIT = 300
"""The same where both come from one statement of the user, whose form should come back."""

_VERSION = re.compile(r"_\d+$")


def tidy(block: Block, live_out: Set[Var], user_names: Set[str], keep: Set[Var] = frozenset()) -> Block:
    """Simplify one sweep.

    Parameters
    ----------
    block : Block
        The statements of the sweep.
    live_out : set of Var
        Vars that are read after the sweep.
    user_names : set of str
        Names that the user chose; their assignments stay visible.
    keep : set of Var
        Values that are computed even if nobody reads them: the user's program may raise there.
    """
    for _ in range(8):
        before = block
        block = drop_dead(block, live_out, keep)
        if not keep:
            block = without_last(block, live_out)
        block = joined_stores(block)
        block = _Moves(block, live_out, user_names).run()
        if block is before:
            break
    return _without_lonely_comments(_without_idle_copies(block, Aliases(block)))


# ---- copies ----------------------------------------------------------------------------------------------------------


def _without_idle_copies(block: Block, aliases: Aliases) -> Block:
    """Read an array itself where only its values matter: as an operand, or stored into other memory."""

    def plain(node: Expr) -> Expr:
        if not isinstance(node, Call) or not _makes_values(node.func):
            return node
        return replace(node, args=tuple(map(_copied, node.args)))

    out: list[Stmt] = []
    for stmt in block:
        new = rewrite.map_headers(stmt, lambda header: rewrite.map_expr(header, plain))
        if isinstance(new, Store) and new.value != (source := _copied(new.value)):
            places = {aliases.root(var) for var in rewrite.free_vars(source)}
            if aliases.is_local(new.array) and aliases.root(new.array) not in places:
                new = replace(new, value=source)
        inner = tuple(_without_idle_copies(part, aliases) for part in rewrite.blocks(new))
        out.append(rewrite.with_blocks(new, inner) if inner else new)
    return tuple(out)


def _makes_values(func: Callable[..., Any]) -> bool:
    """Whether a function is element by element or sums: its result shares no memory with its operands."""
    rule = rule_of(func)
    elementwise = isinstance(func, np.ufunc) or (rule is not None and rule.kind == "partials")
    return elementwise or func in (np.sum, ops.strong_mul)


def _copied(expr: Expr) -> Expr:
    """What a copy copies; other expressions as they are."""
    return expr.args[0] if isinstance(expr, Call) and expr.func is np.copy else expr


# ---- moves -----------------------------------------------------------------------------------------------------------


class _Moves:
    """One round of copy propagation, nesting and merging of names over a sweep."""

    def __init__(self, block: Block, live_out: Set[Var], user_names: Set[str]) -> None:
        self.block = block
        self.live_out = live_out
        self.user_names = user_names
        self.aliases = Aliases(block)
        self.reads: Counter[Var] = Counter()
        self.assigns: Counter[Var] = Counter()
        for stmt in rewrite.statements(block):
            for header in rewrite.headers(stmt):
                self.reads.update(part for part in rewrite.subexpressions(header) if isinstance(part, Var))
            self.assigns.update(rewrite.defines(stmt))

    def run(self) -> Block:
        return self._block(self.block)

    def is_temporary(self, var: Var) -> bool:
        return var.name not in self.user_names and _VERSION.sub("", var.name) not in self.user_names

    def _block(self, block: Block) -> Block:
        stmts = list(block)
        changed = False
        for k, stmt in enumerate(stmts):
            inner = rewrite.blocks(stmt)
            if inner:
                new = tuple(self._block(part) for part in inner)
                if any(a is not b for a, b in zip(new, inner, strict=True)):
                    stmts[k] = rewrite.with_blocks(stmt, new)
                    changed = True
        k = 0
        while k < len(stmts):
            stmt = stmts[k]
            if isinstance(stmt, Assign) and len(stmt.targets) == 1:
                if self._is_idle(stmts, k):
                    del stmts[k]
                    changed = True
                    continue
                done = self._propagate(stmts, k) or self._nest(stmts, k) or self._merge(stmts, k)
                if done:
                    changed = True
                    k = max(k - 1, 0)
                    continue
            elif isinstance(stmt, Assign) and isinstance(stmt.value, Tuple) and self._merge(stmts, k):
                changed = True
                continue
            k += 1
        return tuple(stmts) if changed else block

    def _single(self, var: Var) -> bool:
        return self.assigns[var] == 1 and var not in self.live_out

    # y = x; x = y: the second says nothing

    def _is_idle(self, stmts: list[Stmt], k: int) -> bool:
        stmt = stmts[k]
        assert isinstance(stmt, Assign)
        if not isinstance(stmt.value, Var) or len(stmt.targets) != 1:
            return False
        for j in range(k - 1, -1, -1):
            here = stmts[j]
            if isinstance(here, Assign) and here.targets == (stmt.value,):
                return here.value == stmt.targets[0]
            changed = {var for inner in rewrite.statements((here,)) for var in rewrite.defines(inner)}
            if stmt.value in changed or stmt.targets[0] in changed:
                return False
        return False

    # x = y: read y instead

    def _propagate(self, stmts: list[Stmt], k: int) -> bool:
        stmt = stmts[k]
        assert isinstance(stmt, Assign)
        (target,) = stmt.targets
        value = stmt.value
        if not isinstance(value, Var | Const) or not self._single(target) or not self.is_temporary(target):
            return False
        if isinstance(value, Const) and isinstance(target.type, Array | ListOf):
            return False
        last = self._last_read(stmts, k, target)
        if last is None:
            return False
        if isinstance(value, Var):
            for j in range(k + 1, last + 1):
                assigned = {var for inner in rewrite.statements((stmts[j],)) for var in rewrite.defines(inner)}
                if value in assigned and not (j == last and isinstance(stmts[j], Assign)):
                    return False
        stmts[k + 1 : last + 1] = rewrite.substitute_block(tuple(stmts[k + 1 : last + 1]), {target: value})
        if isinstance(value, Var):
            self.reads[value] += self.reads[target] - 1
        del stmts[k]
        return True

    def _last_read(self, stmts: list[Stmt], k: int, target: Var) -> int | None:
        """The last statement of the block that reads `target`, when the block holds all its reads."""
        found, last = 0, None
        for j in range(k + 1, len(stmts)):
            here = self._count(stmts[j], target)
            if here:
                found, last = found + here, j
        return last if found == self.reads[target] else None

    @staticmethod
    def _count(stmt: Stmt, var: Var) -> int:
        return sum(
            part == var
            for inner in rewrite.statements((stmt,))
            for header in rewrite.headers(inner)
            for part in rewrite.subexpressions(header)
        )

    # t = e; ... f(t): write e in the place of t

    def _nest(self, stmts: list[Stmt], k: int) -> bool:
        stmt = stmts[k]
        assert isinstance(stmt, Assign)
        (target,) = stmt.targets
        several = self.reads[target] != 1
        if several and not (isinstance(stmt.value, Load) and isinstance(target.type, Scalar)):
            return False
        if not self._single(target) or not self.is_temporary(target):
            return False
        if isinstance(stmt.value, Call) and stmt.value.func in (ops.pop, ops.new_list):
            return False
        if self.aliases.stored(target) and not isinstance(stmt.value, Load | Var) and not self._is_value(target):
            return False
        inputs = rewrite.free_vars(stmt.value)
        arrays = {self.aliases.root(var) for var in inputs if isinstance(var.type, Array | ListOf)}
        for j in range(k + 1, len(stmts)):
            here = stmts[j]
            if any(target in rewrite.free_vars(header) for header in rewrite.headers(here)):
                if several and (
                    rewrite.blocks(here)
                    or self._count(here, target) != self.reads[target]
                    or here.origin != stmt.origin
                ):
                    return False
                return self._nest_into(stmts, k, j)
            if isinstance(here, Comment):
                continue
            for inner in rewrite.statements((here,)):
                if any(var in inputs for var in rewrite.defines(inner)):
                    return False
                if isinstance(inner, Store) and self.aliases.root(inner.array) in arrays:
                    return False
                if isinstance(inner, Effect) and arrays:
                    return False
                if any(target in rewrite.free_vars(header) for header in rewrite.headers(inner)):
                    return False
        return False

    def _is_value(self, target: Var) -> bool:
        return not isinstance(target.type, Array | ListOf)

    def _nest_into(self, stmts: list[Stmt], k: int, j: int) -> bool:
        source, sink = stmts[k], stmts[j]
        assert isinstance(source, Assign)
        (target,) = source.targets
        if isinstance(sink, While) or (isinstance(sink, Store) and sink.array == target):
            return False
        if any(
            isinstance(part, Load) and part.array == target
            for h in rewrite.headers(sink)
            for part in rewrite.subexpressions(h)
        ):
            return False
        limit = STATEMENT_LIMIT
        if not (source.origin is not None and source.origin == sink.origin and not isinstance(sink, Comment)):
            limit = NEST_LIMIT
        elif isinstance(sink, Assign) and self._in_backward(source):
            limit = 2 * NEST_LIMIT
        size = sum(1 for header in rewrite.headers(sink) for _ in rewrite.subexpressions(header))
        if size + sum(1 for _ in rewrite.subexpressions(source.value)) > limit:
            return False
        stmts[j] = rewrite.map_headers(sink, lambda node: rewrite.substitute(node, {target: source.value}))
        del stmts[k]
        return True

    @staticmethod
    def _in_backward(source: Assign) -> bool:
        return source.targets[0].name.endswith("_bar")

    # x_1 = e; ...; x = x_1: assign x at once

    def _merge(self, stmts: list[Stmt], k: int) -> bool:
        stmt = stmts[k]
        assert isinstance(stmt, Assign)
        values = stmt.value.items if isinstance(stmt.value, Tuple) and len(stmt.targets) > 1 else (stmt.value,)
        for position, (target, value) in enumerate(zip(stmt.targets, values, strict=True)):
            if not isinstance(value, Var) or value == target or not self._single(value) or value.type != target.type:
                continue
            others = [item for n, item in enumerate(values) if n != position]
            if value in others or any(target in rewrite.free_vars(item) for item in others):
                continue
            start = self._definition(stmts, k, value)
            if start is None or not self._mergeable(stmts, start, k, value, target):
                continue
            section = rewrite.rename_block(tuple(stmts[start:k]), {value: target})
            stmts[start:k] = section
            rest = [(t, v) for n, (t, v) in enumerate(zip(stmt.targets, values, strict=True)) if n != position]
            if not rest:
                tail = stmts[k + 1 :]
                stmts[k:] = rewrite.substitute_block(tuple(tail), {value: target})
            else:
                targets, items = tuple(t for t, _ in rest), tuple(v for _, v in rest)
                stmts[k] = Assign(targets, items[0] if len(items) == 1 else Tuple(items), stmt.origin)
                stmts[k + 1 :] = rewrite.substitute_block(tuple(stmts[k + 1 :]), {value: target})
            self.assigns[value] -= 1
            return True
        return False

    def _definition(self, stmts: list[Stmt], k: int, value: Var) -> int | None:
        for j in range(k - 1, -1, -1):
            here = stmts[j]
            if isinstance(here, Assign) and value in here.targets:
                return j
        return None

    def _mergeable(self, stmts: list[Stmt], start: int, k: int, value: Var, target: Var) -> bool:
        # every read of the value lies in this block, after its definition
        found = sum(self._count(stmt, value) for stmt in stmts[start:])
        if found != self.reads[value]:
            return False
        for stmt in stmts[start:k]:
            for inner in rewrite.statements((stmt,)):
                if inner is stmts[start]:
                    if len(inner.targets) > 1 and target in inner.targets:  # type: ignore[union-attr]
                        return False
                    continue
                if target in rewrite.defines(inner):
                    return False
                if any(target in rewrite.free_vars(header) for header in rewrite.headers(inner)):
                    return False
        # after the move nothing may give the target another value while the old name is still read
        for stmt in stmts[k + 1 :]:
            for inner in rewrite.statements((stmt,)):
                if target in rewrite.defines(inner) and any(self._count(rest, value) for rest in stmts[k + 1 :]):
                    return False
        return True


# ---- comments --------------------------------------------------------------------------------------------------------


def _without_lonely_comments(block: Block, above: str | None = None) -> Block:
    """Drop comments with no statement after them, and those that repeat the one above; nested blocks see it too."""
    out: list[Stmt] = []
    for k, stmt in enumerate(block):
        if isinstance(stmt, Comment):
            following = block[k + 1] if k + 1 < len(block) else None
            if following is None or isinstance(following, Comment) or stmt.text == above:
                continue
            above = stmt.text
        elif isinstance(stmt, If | For | While):
            stmt = rewrite.with_blocks(
                stmt, tuple(_without_lonely_comments(inner, above) for inner in rewrite.blocks(stmt))
            )
            if any(isinstance(inner, Comment) for inner in rewrite.statements((stmt,))):
                above = None
        out.append(stmt)
    return tuple(out)


def resolve_primal_as(block: Block) -> Block:
    """Replace `primal_as(value, formula)` by the value."""

    def change(node: Expr) -> Expr:
        return node.args[0] if isinstance(node, Call) and node.func is ops.primal_as else node

    return tuple(
        rewrite.with_blocks(
            rewrite.map_headers(stmt, lambda header: rewrite.map_expr(header, change)),
            tuple(resolve_primal_as(inner) for inner in rewrite.blocks(stmt)),
        )
        for stmt in block
    )


def reads_of(block: Iterable[Stmt]) -> set[Var]:
    """Vars that a block reads before (or without) assigning them itself."""
    found: set[Var] = set()
    _collect(tuple(block), set(), found)
    return found


def surely_assigned(block: Block) -> set[Var]:
    """Vars that a block assigns whichever way it takes."""
    return _collect(block, set(), set())


def _collect(block: Block, assigned: set[Var], found: set[Var]) -> set[Var]:
    assigned = set(assigned)
    for stmt in block:
        if isinstance(stmt, Raise | Comment):
            continue
        for header in rewrite.headers(stmt):
            found |= rewrite.free_vars(header) - assigned
        inner = rewrite.blocks(stmt)
        if inner:
            inside = assigned | set(rewrite.defines(stmt))
            ends = [_collect(part, inside, found) for part in inner]
            if isinstance(stmt, If):
                assigned |= ends[0] & ends[1]
        else:
            assigned |= set(rewrite.defines(stmt))
    return assigned
