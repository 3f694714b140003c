"""What compiled text computes for nobody: numbers that are not read, stores into new arrays of which only the size is.

A program keeps what its user wrote, because it may raise an error there.  In loops and numbers every such error has a
check of its own, and what is left may go.
"""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.ir import build, ops, rewrite
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Comment,
    Const,
    Function,
    If,
    Load,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import Array, Scalar, is_floating

_NEW = (np.empty, np.zeros)
_SIZES: frozenset[Any] = frozenset({ops.dim, np.size})
_SILENT: frozenset[Any] = frozenset({abs, min, max, float, bool, ops.ifelse, ops.and_, ops.or_})


def without_unread(function: Function) -> Function:
    """The same program without them."""
    return replace(function, body=_Unread(function).rest(function.body))


class _Unread:
    def __init__(self, function: Function) -> None:
        self.defining: defaultdict[Var, list[Assign | Store]] = defaultdict(list)
        self.contents: Counter[Var] = Counter()  # how often each name is read, but for sizes of arrays
        self.sizes: Counter[Var] = Counter()
        self.gone: set[Stmt] = set()
        self.foreign = {*function.params, *function.tapes, *function.computed}  # made elsewhere
        for stmt in function.body:
            self.contents.update(rewrite.occurring(stmt))
        for stmt in rewrite.statements(function.body):
            if type(stmt) is Assign:
                for var in stmt.targets:
                    self.defining[var].append(stmt)
                if not _is_new(stmt):
                    self.foreign.update(stmt.targets)
            elif type(stmt) is Store:
                self.defining[stmt.array].append(stmt)
                self.contents[stmt.array] -= 1
            else:
                self.foreign.update(rewrite.defines(stmt))
            self._count_sizes(stmt, 1)
        work = list(self.defining)
        while work:
            work += self._drop(work.pop())

    def _drop(self, var: Var) -> list[Var]:
        """Leave out what gives a name its value, if nobody reads it; the names that were read there."""
        if self.contents[var]:
            return []
        found: list[Var] = []
        stores = {stmt for stmt in self.defining[var] if isinstance(stmt, Store)}
        for stmt in sorted(self.defining[var], key=lambda stmt: isinstance(stmt, Assign)):
            # what is stored into must be there
            needed = isinstance(stmt, Assign) and not self.gone.issuperset(stores)
            if stmt not in self.gone and not needed and self._is_idle(stmt):
                self.gone.add(stmt)
                for part in rewrite.value_headers(stmt):
                    found += rewrite.occurrences(part)
                self._count_sizes(stmt, -1)
        self.contents.subtract(found)
        return found

    def _is_idle(self, stmt: Assign | Store) -> bool:
        if isinstance(stmt, Store):
            return stmt.array not in self.foreign and all(map(_is_silent, (*stmt.index, stmt.value)))
        (target, *others) = stmt.targets
        if others or self.sizes[target]:
            return False
        return _is_new(stmt) or (isinstance(target.type, Scalar) and _is_silent(stmt.value))

    def _count_sizes(self, stmt: Stmt, times: int) -> None:
        """Count the sizes that a statement itself reads, where they have been counted as contents."""
        if rewrite.calls(stmt).isdisjoint(_SIZES):
            return
        for header in rewrite.value_headers(stmt):
            if rewrite.callees(header).isdisjoint(_SIZES):
                continue
            for part in rewrite.subexpressions(header):
                if isinstance(part, Call) and part.func in _SIZES and isinstance(part.args[0], Var):
                    self.sizes[part.args[0]] += times
                    self.contents[part.args[0]] -= times

    def rest(self, block: Block) -> Block:
        """A block without what has gone, and without blocks that hold nothing any more."""
        out: list[Stmt] = []
        for stmt in block:
            if stmt in self.gone:
                continue
            inner = rewrite.blocks(stmt)
            if inner:
                kept = tuple(map(self.rest, inner))
                idle = not isinstance(stmt, While) and not any(map(_acts, kept))
                if idle and all(map(_is_silent, rewrite.headers(stmt))):
                    continue
                if isinstance(stmt, If) and not _acts(kept[0]) and _acts(kept[1]):
                    stmt = replace(stmt, test=build.not_(stmt.test), body=kept[1], orelse=())
                else:
                    stmt = rewrite.with_blocks(stmt, kept)
            out.append(stmt)
        return tuple(out)


def _is_new(stmt: Assign) -> bool:
    target, value = stmt.targets[0], stmt.value
    return len(stmt.targets) == 1 and isinstance(target.type, Array) and isinstance(value, Call) and value.func in _NEW


def _is_silent(expr: Any) -> bool:
    """Whether evaluating numbers has no effect and raises nothing that has no check in front of it."""
    return all(
        _is_quiet(part) if isinstance(part, Call) else isinstance(part, (Var, Const, Load, Slice, Tuple))
        for part in rewrite.subexpressions(expr)
    )


def _is_quiet(call: Call) -> bool:
    """Whether it is an operation on numbers, or asks for a size."""
    if call.func in _SIZES:
        return True
    if call.kwargs or not all(isinstance(arg.type, Scalar) for arg in call.args):
        return False
    module = getattr(call.func, "__module__", None)
    known = call.func in _SILENT or isinstance(call.func, np.ufunc) or module == operator.add.__module__
    return known or (module == math.__name__ and is_floating(call.type))


def _acts(block: Block) -> bool:
    return any(not isinstance(stmt, Comment) for stmt in block)
