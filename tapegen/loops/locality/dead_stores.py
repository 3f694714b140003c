"""Dead store elimination: scalars that are not read, and stores into new arrays of which only the size is read.

A program keeps statements whose values are not read, because they may raise.  In loops over scalars every such error
has a check of its own, so a statement may go if evaluating it cannot raise.  It pays wherever a derivative does not
need what its primal computed; it runs once more after fusion, which leaves arrays without readers.

Before::

    def f(x: "f8[:]"):
        s = 0.0
        t = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            t[i] = x[i] * 2.0
            s = s + x[i]
        return s

After::

    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
        return s
"""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Const,
    Function,
    Load,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import Array, Scalar, is_floating
from tapegen.transform.simplify.dead_code import acts, with_remaining

_NEW = (np.empty, np.zeros)
_SIZES: frozenset[Any] = frozenset({intrinsics.dim, np.size})
_GIVING = frozenset({Assign, Store})
_SILENT: frozenset[Any] = frozenset({abs, min, max, float, bool, intrinsics.ifelse, intrinsics.and_, intrinsics.or_})


def eliminate_dead_stores(function: Function) -> Function:
    """The same program without them."""
    return traversal.with_body(function, _Unread(function).rest(function.body))


class _Unread:
    def __init__(self, function: Function) -> None:
        foreign = {*function.params, *function.tapes, *function.computed}  # arrays that are allocated elsewhere
        self.giving: defaultdict[Var, list[Assign | Store]] = defaultdict(list)  # what may go, by what it defines
        self.staying: set[Stmt] = set()
        self.work: list[Var] = []
        self.read: set[Var] = set()
        self.made: set[Var] = set()  # arrays whose size is read, or that a remaining statement stores into
        for stmt in traversal.statements(function.body):
            if type(stmt) is Store:
                self.giving[stmt.array].append(stmt)
            elif type(stmt) is Assign and len(stmt.targets) == 1 and (_is_number(stmt) or _is_new(stmt)):
                self.giving[stmt.targets[0]].append(stmt)
            else:
                foreign.update(stmt.targets)
                self._stays(stmt)
        for array in self.giving.keys() & foreign:
            self._stay([stmt for stmt in self.giving[array] if type(stmt) is Store])
        self._follow()
        # statements that may raise although nothing reads their value
        self._stay([stmt for stmt in self._rest() if not _is_new(stmt) and not all(map(_is_silent, _values(stmt)))])
        self._follow()
        self.gone = set(self._rest())

    def _rest(self) -> list[Assign | Store]:
        return [stmt for found in self.giving.values() for stmt in found if stmt not in self.staying]

    def _follow(self) -> None:
        """Keep the definitions of what is read."""
        while self.work:
            var = self.work.pop()
            self._stay([stmt for stmt in self.giving.get(var, ()) if var in self.read or type(stmt) is Assign])

    def _stay(self, stmts: Iterable[Assign | Store]) -> None:
        for stmt in stmts:
            if stmt not in self.staying:
                self.staying.add(stmt)
                self._stays(stmt)

    def _stays(self, stmt: Stmt) -> None:
        """Mark everything that a statement reads."""
        if type(stmt) is Store:
            self._note(self.made, {stmt.array})
        if type(stmt) in _GIVING and traversal.calls(stmt).isdisjoint(_SIZES):
            self._note(self.read, traversal.values_read(stmt))
            return
        for header in traversal.value_headers(stmt):
            contents: Set[Var] = traversal.free_vars(header)
            if not traversal.callees(header).isdisjoint(_SIZES):
                counts = Counter(traversal.occurrences(header))
                for part in traversal.subexpressions(header):
                    if isinstance(part, Call) and part.func in _SIZES and isinstance(part.args[0], Var):
                        counts[part.args[0]] -= 1
                        self._note(self.made, {part.args[0]})
                contents = {var for var, count in counts.items() if count}
            self._note(self.read, contents)

    def _note(self, found: set[Var], names: Set[Var]) -> None:
        if not names <= found:
            self.work += names - found
            found |= names

    def rest(self, block: Block) -> Block:
        """A block without the removed statements, and without blocks that are now empty."""
        out: list[Stmt] = []
        for stmt in block:
            if stmt in self.gone:
                continue
            inner = stmt.blocks
            if inner:
                kept = tuple(map(self.rest, inner))
                idle = not isinstance(stmt, While) and not any(map(acts, kept))
                if idle and all(map(_is_silent, stmt.headers)):
                    continue
                stmt = with_remaining(stmt, kept)
            out.append(stmt)
        return tuple(out)


def _is_new(stmt: Stmt) -> bool:
    """Whether a statement allocates an array."""
    if not isinstance(stmt, Assign) or not isinstance(stmt.targets[0].type, Array):
        return False
    return isinstance(stmt.value, Call) and stmt.value.func in _NEW


def _is_number(stmt: Assign) -> bool:
    return type(stmt.targets[0].type) is Scalar


def _values(stmt: Assign | Store) -> tuple[Any, ...]:
    return (*stmt.index, stmt.value) if isinstance(stmt, Store) else (stmt.value,)


def _is_silent(expr: Any) -> bool:
    """Whether evaluating scalars has no effect and cannot raise beyond the checks before it."""
    return all(
        _is_quiet(part) if isinstance(part, Call) else isinstance(part, (Var, Const, Load, Slice, Tuple))
        for part in traversal.subexpressions(expr)
    )


def _is_quiet(call: Call) -> bool:
    """Whether it is an operation on scalars, or reads a size."""
    if call.func in _SIZES:
        return True
    if call.kwargs or not all(isinstance(arg.type, Scalar) for arg in call.args):
        return False
    module = getattr(call.func, "__module__", None)
    known = call.func in _SILENT or isinstance(call.func, np.ufunc) or module == operator.add.__module__
    return known or (module == math.__name__ and is_floating(call.type))
