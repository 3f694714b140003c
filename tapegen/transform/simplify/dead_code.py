"""Dead code and dead store elimination: values that are not read, stores whose elements are not read, zeros that are
added to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

import numpy as np

from tapegen.analysis.memory_access import sources
from tapegen.ir import builders, intrinsics, traversal
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
    Index,
    Raise,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
    primal_origin,
)
from tapegen.ir.types import Array, ListOf, Scalar

Groups = tuple[frozenset[Var], ...]

_NONE: frozenset[Var] = frozenset()


def eliminate_dead_code(block: Block, live_out: Set[Var], keep: Set[Var], aliases: Aliases) -> Block:
    """Remove assignments whose value nothing reads, and stores into arrays nothing reads."""
    read = set(live_out).union(*map(traversal.values_read, block))
    while True:
        live_roots = {aliases.root(var) for var in read if isinstance(var.type, (Array, ListOf))}
        new = _keep_live(block, read, live_roots, aliases, keep)
        if new is block:
            return block
        block, before = new, len(read)
        read = set(live_out).union(*map(traversal.values_read, block))
        if len(read) == before:
            return block  # a dead statement may be the only reader of others


def _keep_live(block: Block, read: set[Var], live_roots: set[Var], aliases: Aliases, keep: Set[Var]) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, Assign):
            targets, value = stmt.targets, stmt.value
            if read.isdisjoint(targets) and is_pure(value):
                stored = any(target in aliases.through and aliases.root(target) in live_roots for target in targets)
                idle = isinstance(value, (Var, Const)) or keep.isdisjoint(targets)
                if idle and not stored:
                    continue
            if len(targets) > 1 and isinstance(value, Tuple):
                kept = [(t, v) for t, v in zip(targets, value.items, strict=True) if t in read or aliases.stored(t)]
                if len(kept) == 1:
                    stmt = Assign((kept[0][0],), kept[0][1], stmt.origin)
                elif len(kept) < len(targets):
                    stmt = Assign(tuple(t for t, _ in kept), Tuple(tuple(v for _, v in kept)), stmt.origin)
            if len(stmt.targets) == 1 and stmt.value is stmt.targets[0]:
                continue
        elif isinstance(stmt, Store):
            array = stmt.array
            if array not in keep and aliases.root(array) not in live_roots and aliases.is_local(array):
                continue
        inner = stmt.blocks
        if inner:
            new = tuple(_keep_live(part, read, live_roots, aliases, keep) for part in inner)
            silent = not keep or primal_origin(stmt) is None or not _may_raise(stmt)
            if not any(map(acts, new)) and not isinstance(stmt, While) and silent:
                continue
            stmt = with_remaining(stmt, new)
        out.append(stmt)
    return block if traversal.same(out, block) else tuple(out)


def with_remaining(stmt: Stmt, blocks: tuple[Block, ...]) -> Stmt:
    """A compound statement with what remains of its blocks; the test of an empty branch is negated."""
    if isinstance(stmt, If) and not acts(blocks[0]) and acts(blocks[1]):
        return replace(stmt, test=builders.not_(stmt.test), body=blocks[1], orelse=())
    return traversal.with_blocks(stmt, blocks)


def acts(block: Block) -> bool:
    """Whether a block has more than comments."""
    return any(type(stmt) is not Comment for stmt in block)


def drop_unread(block: Block, optional: set[Var], live_out: Set[Var] = _NONE) -> Block:
    """Drop assignments of optional variables that nothing reads, neither in the block nor behind it."""
    while gone := optional.difference(live_out, *map(traversal.reads, block)):
        shorter = _without(block, gone)
        if shorter is block:
            break
        block = shorter
    return block


def _without(block: Block, gone: set[Var]) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, Assign) and gone.issuperset(stmt.targets):
            continue
        inner = stmt.blocks
        if inner and not gone.isdisjoint(traversal.assigns(stmt)):
            stmt = traversal.with_blocks(stmt, tuple(_without(part, gone) for part in inner))
        out.append(stmt)
    return block if traversal.same(out, block) else tuple(out)


def _may_raise(stmt: Stmt) -> bool:
    """Whether the header of an If or For can raise an exception of the user's program."""
    if isinstance(stmt, For) and not isinstance(stmt.step, Const):
        return True  # division by zero
    return any(traversal.may_raise(header) for header in stmt.headers)


def is_pure(value: Expr) -> bool:
    return not any(map(intrinsics.changes, traversal.callees(value)))


# ---- dead stores -----------------------------------------------------------------------------------------------------


def drop_trailing(block: Block, live_out: Set[Var], aliases: Aliases) -> Block:
    """Drop stores and values that nothing reads later: `a_bar[0] = 0.0` after the last read of `a_bar`.

    Not for a sweep in which the user's own statements may raise.
    """
    return _without_last(block, _Read(aliases, live_out), aliases)


class _Read:
    """Variables that are read later, and the arrays they refer to."""

    def __init__(self, aliases: Aliases, names: Iterable[Var]) -> None:
        self.aliases = aliases
        self.names: set[Var] = set()
        self.roots: set[Var] = set()
        self.add(names)

    def copy(self) -> _Read:
        new = _Read(self.aliases, ())
        new.names, new.roots = set(self.names), set(self.roots)
        return new

    def add(self, names: Iterable[Var]) -> None:
        for var in names:
            if var not in self.names:
                self.names.add(var)
                if isinstance(var.type, (Array, ListOf)):
                    self.roots.add(self.aliases.root(var))


def _without_last(block: Block, read: _Read, aliases: Aliases) -> Block:
    """`read` holds what is read after the block."""
    out: list[Stmt] = []
    for stmt in reversed(block):
        new = stmt
        if isinstance(stmt, Assign):
            if read.names.isdisjoint(stmt.targets) and is_pure(stmt.value):
                continue
        elif isinstance(stmt, Store):
            if aliases.is_local(stmt.array) and aliases.root(stmt.array) not in read.roots:
                continue
        elif isinstance(stmt, If):
            parts = tuple(_without_last(part, read.copy(), aliases) for part in stmt.blocks)
            if not any(acts(part) for part in parts):
                continue
            new = traversal.with_blocks(stmt, parts)
        out.append(new)
        read.add(traversal.reads(new))
    out.reverse()
    return block if traversal.same(out, block) else tuple(out)


def merge_stores(block: Block, aliases: Aliases) -> Block:
    """Write `a[i] = 0.0; ...; a[i] += x` as `a[i] = x`, and drop self-copies that have no effect."""
    out: list[Stmt] = []
    zeroed: set[Var] = set()
    changed = False
    for original in block:
        stmt = original
        if isinstance(stmt, Assign):
            value = stmt.value
            copied = isinstance(value, Call) and value.func is np.copy and value.args == stmt.targets
            if copied and not aliases.stored(stmt.targets[0]):
                changed = True
                continue
        elif isinstance(stmt, Store):
            if not stmt.accumulate:
                if builders.is_const(stmt.value, 0.0):
                    zeroed.add(stmt.array)
            elif stmt.array in zeroed and (cleared := _cleared(out, stmt, aliases)) is not None:
                del out[cleared]
                stmt = replace(stmt, accumulate=False)
        else:
            stmt = traversal.with_blocks(stmt, tuple(merge_stores(part, aliases) for part in stmt.blocks))
        changed |= stmt is not original
        out.append(stmt)
    return tuple(out) if changed else block


def _cleared(before: list[Stmt], stmt: Store, aliases: Aliases) -> int | None:
    """The store of zeros to exactly the elements that a statement adds to, with no conflicting access in between."""
    chosen = _NONE.union(*map(traversal.free_vars, stmt.index))
    if any(isinstance(part.type, Array) and part.type.dtype != "bool" for part in _parts(stmt.index)):
        return None  # with a repeated index it adds more than once
    root = aliases.root(stmt.array)
    indices = {aliases.root(var) for var in chosen}
    if _reads(stmt, root, aliases):
        return None
    for k in range(len(before) - 1, -1, -1):
        here = before[k]
        if isinstance(here, Store) and here.array == stmt.array and here.index == stmt.index:
            return k if not here.accumulate and builders.is_const(here.value, 0.0) else None
        if here.blocks or isinstance(here, (Effect, Raise)) or not chosen.isdisjoint(here.targets):
            return None
        if _reads(here, root, aliases):
            return None
        if isinstance(here, Store) and (aliases.root(here.array) == root or aliases.root(here.array) in indices):
            return None
    return None


def _reads(stmt: Stmt, root: Var, aliases: Aliases) -> bool:
    """Whether a statement may read an array, views of it included."""
    return any(aliases.root(var) == root for var in traversal.values_read(stmt) if type(var.type) is not Scalar)


def _parts(index: tuple[Index, ...]) -> Iterator[Expr]:
    for item in index:
        if isinstance(item, Slice):
            yield from (part for part in (item.lo, item.hi, item.step) if part is not None)
        else:
            yield item


# ---- may-alias sets --------------------------------------------------------------------------------------------------


class Aliases:
    """Arrays that may share memory, as union-find over views, moves and merges."""

    def __init__(self, block: Block, shared: Groups) -> None:
        self.parent: dict[Var, Var] = {}
        self.assigned: set[Var] = set()  # arrays and lists that are assigned here
        self.through: set[Var] = set()  # variables through which the sweep writes
        for group in shared:
            first, *others = sorted(group, key=lambda var: var.name)
            for other in others:
                self._union(other, first)
        for stmt in traversal.statements(block):
            if type(stmt) is Assign:
                if len(stmt.targets) > 1 or type(stmt.targets[0].type) is not Scalar:
                    self._relate(stmt.targets, stmt.value)
            elif isinstance(stmt, Store):
                self.through.add(stmt.array)
            elif isinstance(stmt, Effect) and stmt.call.args and isinstance(stmt.call.args[0], Var):
                self.through.add(stmt.call.args[0])
                for item in stmt.call.args[1:]:
                    for source in sources(item):
                        self._union(source, stmt.call.args[0])
        self.stores = {self.root(var) for var in self.through}
        self.foreign = {self.root(var) for group in shared for var in group}

    def _relate(self, targets: Sequence[Var], value: Expr) -> None:
        if isinstance(value, Tuple) and len(targets) == len(value.items) > 1:
            for target, item in zip(targets, value.items, strict=True):
                self._relate((target,), item)
            return
        for target in targets:
            if isinstance(target.type, (Array, ListOf)):
                self.assigned.add(target)
                for source in sources(value):
                    self._union(target, source)

    def groups(self) -> Groups:
        """Arrays and lists that may share memory with values from outside of the sweep."""
        found: dict[Var, set[Var]] = {root: set() for root in self.foreign}
        for var in (*self.parent, *self.foreign):
            if (root := self.root(var)) in found:
                found[root].add(var)
        return tuple(map(frozenset, found.values()))

    def root(self, var: Var) -> Var:
        while (above := self.parent.get(var, var)) != var:
            var = above
        return var

    def _union(self, a: Var, b: Var) -> None:
        a, b = self.root(a), self.root(b)
        if a != b:
            self.parent[a] = b

    def stored(self, var: Var) -> bool:
        return isinstance(var.type, (Array, ListOf)) and self.root(var) in self.stores

    def is_local(self, array: Var) -> bool:
        """Whether the array is allocated in this sweep: nothing outside can see stores into it."""
        root = self.root(array)
        return root in self.assigned and root not in self.foreign
