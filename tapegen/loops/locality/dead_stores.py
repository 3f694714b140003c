"""Dead store elimination: what nothing reads is not computed, stored or copied.

Scalars that are not read are dead, and so are stores into new arrays of which only the size is read, stores after the
last statement that reads an array, and a copy that takes the place of the array whose copy it is.

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
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.dead_code import remove_dead
from tapegen.ir.nodes import Assign, Block, Call, Const, For, Function, If, Load, Slice, Stmt, Store, Tuple, Var
from tapegen.ir.types import Array, Scalar, is_floating
from tapegen.loops.analysis.dependence import AliasSets, alias_sets

_NEW = (np.empty, np.zeros)
_SIZES: frozenset[Any] = frozenset({intrinsics.dim, np.size})
_SILENT: frozenset[Any] = frozenset({abs, min, max, float, bool, intrinsics.ifelse, intrinsics.and_, intrinsics.or_})


def eliminate_dead_stores(function: Function) -> Function:
    """The same program without them."""
    foreign = {*function.params, *function.tapes, *function.computed}  # arrays that are allocated elsewhere
    for stmt in traversal.statements(function.body):
        if type(stmt) is not Assign or not _is_new(stmt):
            foreign.update(stmt.targets)

    def may_go(stmt: Stmt) -> bool:
        if isinstance(stmt, Assign):
            scalar = len(stmt.targets) == 1 and type(stmt.targets[0].type) is Scalar
            return _is_new(stmt) or (scalar and _is_silent(stmt.value))
        if isinstance(stmt, Store):
            return stmt.array not in foreign and all(map(_is_silent, (*stmt.index, stmt.value)))
        return isinstance(stmt, (If, For)) and all(map(_is_silent, stmt.headers))

    body = _Lasting(alias_sets(function), function).block(function.body)
    return traversal.with_body(function, remove_dead(body, (), may_go))


class _Lasting:
    """Leaves out stores and copies after which nothing reads what they replace."""

    def __init__(self, memory: AliasSets, function: Function) -> None:
        self.memory = memory
        self.foreign = {memory.group(var) for var in (*function.params, *function.tapes, *function.computed)}
        self.names: defaultdict[Var, set[Var]] = defaultdict(set)  # arrays and lists of each alias set
        self.owned: dict[Var, bool] = {}  # whether all arrays of an alias set are made here
        for var in memory.uses:
            self.names[memory.group(var)].add(var)
        for stmt in traversal.statements(function.body):
            for var in stmt.targets:
                if not isinstance(var.type, Scalar):
                    group = memory.group(var)
                    self.names[group].add(var)
                    self.owned[group] = self.owned.get(group, True) and isinstance(stmt, Assign) and _makes(stmt.value)

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        for stmt in block:
            if out and self._replaces(out[-1], stmt):
                out.pop()
                continue
            out.append(traversal.with_blocks(stmt, tuple(map(self.block, stmt.blocks))) if stmt.blocks else stmt)
        for array, last in self._read_last(out).items():
            out[last + 1 :] = _without_stores(tuple(out[last + 1 :]), array)
        return block if len(out) == len(block) and all(map(operator.is_, out, block)) else tuple(out)

    def _replaces(self, copied: Stmt, stmt: Stmt) -> bool:
        """Whether two statements replace an array that has no other name by its copy."""
        match copied, stmt:
            case (
                Assign((Var(type=Array()) as copy,), Call(np.copy, (Var() as array,), ())),
                Assign((target,), Var() as value),
            ):
                group = self.memory.group(array)
                return (
                    target == array
                    and value == copy
                    and copy.type == array.type
                    and self.memory.uses[copy] == 1
                    and group not in self.foreign
                    and self.names[group] == {array, copy}
                    and self.owned[group]
                )
        return False

    def _read_last(self, block: list[Stmt]) -> dict[Var, int]:
        """For arrays made in a block that stores into them after the last statement that reads them, its place.

        The last places come first, so that statements can be left out behind one after the other.
        """
        made = {
            stmt.targets[0]: place
            for place, stmt in enumerate(block)
            if isinstance(stmt, Assign) and _is_new(stmt) and self.memory.own(stmt.targets[0]) is stmt
        }
        mentioned: defaultdict[Var, Counter[int]] = defaultdict(Counter)
        stored: defaultdict[Var, Counter[int]] = defaultdict(Counter)
        for place, stmt in enumerate(block if made else ()):
            for var in traversal.occurring(stmt):
                if place > made.get(var, place):
                    mentioned[var][place] += 1
            for each in traversal.statements((stmt,)):
                if isinstance(each, Store) and each.array in made:
                    stored[each.array][place] += 1
        found: dict[Var, int] = {}
        for array in stored:
            reads = [place for place, count in mentioned[array].items() if count > stored[array][place]]
            everywhere = mentioned[array].total() == self.memory.uses[array]
            if reads and everywhere and max(stored[array]) > max(reads):
                found[array] = max(reads)
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _without_stores(block: Block, array: Var) -> Block:
    """A block without silent stores into an array."""
    out: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, Store) and stmt.array == array and all(map(_is_silent, (*stmt.index, stmt.value))):
            continue
        out.append(traversal.with_blocks(stmt, tuple([_without_stores(part, array) for part in stmt.blocks])))
    return tuple(out)


def _makes(value: Any) -> bool:
    """Whether an expression is a new array, or another name of one that is counted itself."""
    return isinstance(value, Var) or (isinstance(value, Call) and value.func in (*_NEW, np.copy))


def _is_new(stmt: Assign) -> bool:
    """Whether a statement allocates an array."""
    return isinstance(stmt.targets[0].type, Array) and isinstance(stmt.value, Call) and stmt.value.func in _NEW


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
