"""What compiled text computes for nobody: numbers that are not read, stores into new arrays of which only the size is.

A program keeps what its user wrote, because it may raise an error there.  In loops and numbers every such error has a
check of its own, and what is left may go.
"""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable
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
        self.foreign = {*function.params, *function.tapes, *function.computed}  # made elsewhere
        self.idle: defaultdict[Var, list[Assign | Store]] = defaultdict(list)  # what gives names their values
        stmts = list(rewrite.statements(function.body))
        for stmt in stmts:
            if not isinstance(stmt, Store) and not (isinstance(stmt, Assign) and _is_new(stmt)):
                self.foreign.update(rewrite.defines(stmt))
        self.work: list[Var] = []
        self.read: set[Var] = set()
        self.made: set[Var] = set()  # arrays of which the size is read, or that something stays stored into
        for stmt in stmts:
            if isinstance(stmt, (Assign, Store)) and self._is_idle(stmt):
                self.idle[stmt.array if isinstance(stmt, Store) else stmt.targets[0]].append(stmt)
            else:
                self._stays(stmt)
        staying: set[Stmt] = set()
        while self.work:
            var = self.work.pop()
            for stmt in self.idle[var]:
                if stmt not in staying and (var in self.read or isinstance(stmt, Assign)):
                    staying.add(stmt)
                    self._stays(stmt)
        self.gone = {stmt for found in self.idle.values() for stmt in found} - staying

    def _is_idle(self, stmt: Assign | Store) -> bool:
        """Whether nothing but its value can be noticed of a statement."""
        if isinstance(stmt, Store):
            return stmt.array not in self.foreign and all(map(_is_silent, (*stmt.index, stmt.value)))
        (target, *others) = stmt.targets
        return not others and (_is_new(stmt) or (isinstance(target.type, Scalar) and _is_silent(stmt.value)))

    def _stays(self, stmt: Stmt) -> None:
        """Whatever a statement reads is read."""
        if isinstance(stmt, Store):
            self._note(self.made, (stmt.array,))
        for header in rewrite.value_headers(stmt):
            contents = Counter(rewrite.occurrences(header))
            if not rewrite.callees(header).isdisjoint(_SIZES):
                for part in rewrite.subexpressions(header):
                    if isinstance(part, Call) and part.func in _SIZES and isinstance(part.args[0], Var):
                        contents[part.args[0]] -= 1
                        self._note(self.made, part.args[:1])
            self._note(self.read, [var for var, count in contents.items() if count])

    def _note(self, found: set[Var], names: Iterable[Any]) -> None:
        self.work += [var for var in names if var not in found]
        found.update(names)

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
