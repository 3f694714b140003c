"""Dead code and dead store elimination: values that are not read, stores whose elements are not read, zeros that are
added to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

import numpy as np

from tapegen.analysis.memory_access import sources
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.dead_code import acts, remove_dead
from tapegen.ir.disjoint_sets import DisjointSets
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
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
    primal_origin,
)
from tapegen.ir.types import Array, ListOf, Scalar

Groups = tuple[frozenset[Var], ...]

_NONE: frozenset[Var] = frozenset()


def eliminate_dead_code(block: Block, live_out: Set[Var], keep: Set[Var], aliases: Aliases) -> Block:
    """Remove assignments whose value nothing reads, and stores into arrays nothing reads."""

    def may_go(stmt: Stmt) -> bool:
        if isinstance(stmt, Assign):
            value = stmt.value
            return is_pure(value) and (isinstance(value, (Var, Const)) or keep.isdisjoint(stmt.targets))
        if isinstance(stmt, Store):
            return stmt.array not in keep and aliases.is_local(stmt.array)
        if isinstance(stmt, (If, For)):
            return not keep or primal_origin(stmt) is None or not _may_raise(stmt)
        return False

    return remove_dead(block, live_out, may_go, aliases.root)


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
    """Arrays that may share memory: the closure of views, moves and merges."""

    def __init__(self, block: Block, shared: Groups) -> None:
        self.sets = DisjointSets[Var]()
        self.root = self.sets.find
        self.assigned: set[Var] = set()  # arrays and lists that are assigned here
        self.through: set[Var] = set()  # variables through which the sweep writes
        for group in shared:
            first, *others = sorted(group, key=lambda var: var.name)
            for other in others:
                self.sets.join(other, first)
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
                        self.sets.join(source, stmt.call.args[0])
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
                    self.sets.join(target, source)

    def groups(self) -> Groups:
        """Arrays and lists that may share memory with values from outside of the sweep."""
        found: dict[Var, set[Var]] = {root: set() for root in self.foreign}
        for var in (*self.sets.joined, *self.foreign):
            if (root := self.root(var)) in found:
                found[root].add(var)
        return tuple(map(frozenset, found.values()))

    def stored(self, var: Var) -> bool:
        return isinstance(var.type, (Array, ListOf)) and self.root(var) in self.stores

    def is_local(self, array: Var) -> bool:
        """Whether the array is allocated in this sweep: nothing outside can see stores into it."""
        root = self.root(array)
        return root in self.assigned and root not in self.foreign
