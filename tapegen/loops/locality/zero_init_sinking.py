"""Sinking of zero initialization: zeros are written where they are first added to, or not at all.

A new array of zeros passes through memory twice where a loop then adds to one row of it in each iteration.  Each
iteration can write the zeros of its row instead, which then are in cache; the first addition to a single element, or of
one loop to the elements at the start of the row, becomes a store.  Legal where the loop is the first to access the
array and visits all of its rows.

Before::

    def f(x: "f8[:, :]", w: "f8[:]"):
        y = np.zeros((x.shape[0], x.shape[1]))
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] += w[i] * x[i, j]
        return y

After::

    def f(x, w):
        y = np.empty((x.shape[0], x.shape[1]))
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = w[i] * x[i, j]
        return y
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import Affine, linear, plus
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Const, Expr, For, Function, If, Load, Slice, Stmt, Store, Var, While
from tapegen.ir.types import INT, Array
from tapegen.loops.analysis.block_queries import leaves, names_in
from tapegen.loops.analysis.dependence import alias_sets
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds, dim


def sink_zero_init(function: Function) -> Function:
    """The same program with zeros written in the iterations that first access them."""
    return traversal.with_body(function, _Filling(function).block(function.body))


class _Filling:
    def __init__(self, function: Function) -> None:
        self.memory = alias_sets(function)
        self.names = NameSupply(names_in(function))
        self.known = FlowFacts()

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        untouched: dict[Var, int] = {}  # arrays of zeros, and where they are allocated
        for stmt in block:
            if untouched and not traversal.reads(stmt).isdisjoint(untouched):
                stmt = self._first(stmt, untouched, out)
            out.append(self._inside(stmt))
            self.known.learn(out[-1])
            if isinstance(stmt, Assign) and self._is_new(stmt):
                untouched[stmt.targets[0]] = len(out) - 1
        return tuple(out)

    def _first(self, stmt: Stmt, untouched: dict[Var, int], out: list[Stmt]) -> Stmt:
        """The first statement that accesses new arrays; if it is a loop it may write their zeros."""
        for array in sorted(untouched.keys() & traversal.reads(stmt), key=lambda var: var.name):
            made = untouched.pop(array)
            if isinstance(stmt, For) and self._fills(stmt, array):
                storing, needs_zeros = self._storing(stmt, array)
                if not needs_zeros:
                    out[made] = _without_zeros(out[made])
                    out += self._rows(array, _end(stmt))
                stmt = replace(stmt, body=storing or self._starting(stmt, array))
            elif isinstance(stmt, For) and (shifted := self._shifted(stmt, array)):
                out[made] = _without_zeros(out[made])
                *zeros, stmt = shifted
                out += zeros
            elif isinstance(stmt, If) and array not in traversal.free_vars(stmt.test):
                sides = self._in_sides(stmt, array)
                if sides is not None:
                    out[made] = _without_zeros(out[made])
                    stmt = traversal.with_blocks(stmt, sides)
        return stmt

    def _in_sides(self, stmt: If, array: Var) -> tuple[Block, ...] | None:
        """The blocks of a branch with the zeros that each needs; None where no loop stores in place of adding."""
        outer = self.known
        sides: list[Block] = []
        stored = False
        for block, self.known in zip((stmt.body, stmt.orelse), outer.sides(stmt), strict=True):
            place = next((k for k, each in enumerate(block) if array in traversal.reads(each)), len(block))
            for each in block[:place]:
                self.known.learn(each)
            first = block[place] if place < len(block) else None
            loops = self._storing_first(first, array) if isinstance(first, For) else []
            if loops:
                sides.append((*block[:place], *loops, *block[place + 1 :]))
                stored = True
            else:
                sides.append((*block[:place], *self._zero(array, ()), *block[place:]))
        self.known = outer
        return tuple(sides) if stored else None

    def _storing_first(self, loop: For, array: Var) -> list[Stmt]:
        """A loop that stores in place of adding, after zeros where it does not; empty where there is none."""
        if not self._fills(loop, array):
            return self._shifted(loop, array)
        storing, needs_zeros = self._storing(loop, array)
        if needs_zeros:
            return []
        return [*self._rows(array, _end(loop)), replace(loop, body=storing or self._starting(loop, array))]

    def _shifted(self, loop: For, array: Var) -> list[Stmt]:
        """The same for a loop that adds once to each element of a part of the array."""
        counter = loop.target
        assigned = {counter, *traversal.assigned_in(*loop.body)}
        touching = [stmt for stmt in loop.body if array in traversal.reads(stmt)]
        if loop.step != Const(1) or leaves(loop.body) or counter in traversal.assigned_in(*loop.body):
            return []
        match touching:
            case [Store(array=target, index=(item,), value=value, accumulate=True) as found] if not isinstance(
                item, Slice
            ):
                shift = linear(item).without(counter)
                if target != array or array in traversal.free_vars(value) or linear(item).coefficient(counter) != 1:
                    return []
                if not shift.names.isdisjoint(assigned) or traversal.loads(item) or traversal.loads(loop.stop):
                    return []
            case _:
                return []
        facts, size = self.known.facts, dim(array, 0)
        first, end = plus(loop.start, shift.expr), plus(loop.stop, shift.expr)
        if not facts.nonnegative(facts.form(end) - facts.form(first)):
            end = Call(max, (first, end), (), INT)
        if not facts.nonnegative(facts.form(first)):
            return []
        until = first if facts.nonnegative(facts.form(size) - facts.form(first)) else Call(min, (first, size), (), INT)
        stored = replace(found, accumulate=False)
        body = tuple(stored if stmt is found else stmt for stmt in loop.body)
        return [*self._part(array, Const(0), until), *self._part(array, end, size), replace(loop, body=body)]

    def _part(self, array: Var, start: Expr, stop: Expr) -> list[Stmt]:
        """Zeros in a part of a vector."""
        facts = self.known.facts
        if facts.nonnegative(facts.form(start) - facts.form(stop)):
            return []
        counter = Var(self.names.fresh("k"), INT)
        return [For(counter, start, stop, Const(1), (Store(array, (counter,), Const(0.0)),))]

    def _inside(self, stmt: Stmt) -> Stmt:
        if np.zeros not in traversal.calls(stmt):
            return stmt
        outer = self.known
        match stmt:
            case For() | While():
                self.known = outer.body(stmt)
                sides = [self.block(stmt.body)]
            case If():
                sides = []
                for block, self.known in zip((stmt.body, stmt.orelse), outer.sides(stmt), strict=True):
                    sides.append(self.block(block))
            case _:
                return stmt
        self.known = outer
        return traversal.with_blocks(stmt, tuple(sides))

    def _is_new(self, stmt: Assign) -> bool:
        """Whether a statement creates an array of zeros that has no other name."""
        target, value = stmt.targets[0], stmt.value
        if not isinstance(value, Call) or value.func is not np.zeros:
            return False
        if not isinstance(target.type, Array) or self.memory.own(target) is not stmt:
            return False
        if target.type.dtype not in ("float64", "float32"):
            return False
        return target in self.known.facts.shapes

    # ---- the first loop ----------------------------------------------------------------------------------------------

    def _fills(self, loop: For, array: Var) -> bool:
        """Whether each iteration accesses only its own row of an array, rows being numbered from 0."""
        if loop.step not in (Const(1), Const(-1)) or leaves(loop.body):
            return False
        first = loop.start if loop.step == Const(1) else plus(loop.stop, 1)
        inside = self.known.body(loop).facts
        if not inside.equal(inside.form(first), Affine()) or loop.target in traversal.assigned_in(*loop.body):
            return False
        row = inside.form(loop.target)
        if not inside.nonnegative(inside.form(dim(array, 0)) - 1 - row):
            return False
        return all(_touches_row(stmt, array, loop.target) for stmt in traversal.statements(loop.body))

    def _starting(self, loop: For, array: Var) -> Block:
        """The body of a loop that first writes the zeros of its row."""
        for k, stmt in enumerate(loop.body):
            if array in traversal.reads(stmt):
                match stmt:
                    case Store(index=index, value=value, accumulate=True) if index == (loop.target,):
                        if array not in traversal.free_vars(value):
                            return (*loop.body[:k], replace(stmt, accumulate=False), *loop.body[k + 1 :])
                break
        return (*self._zero(array, (loop.target,)), *loop.body)

    def _storing(self, loop: For, array: Var) -> tuple[Block, bool]:
        """The body of a loop in which an inner one stores the first part of the row; empty if none does.

        Earlier accesses of the iteration lie after this part.  The second value is true if the zeros must have been
        written before: all at once takes less time than a varying number of them in each iteration.
        """
        loops = [k for k, stmt in enumerate(loop.body) if isinstance(stmt, For) and array in traversal.reads(stmt)]
        if not loops:
            return (), False
        k, before = loops[0], loop.body[: loops[0]]
        inner = _storing_loop(loop.body[k], array, loop.target)
        if (
            inner is None
            or traversal.free_vars(inner.stop) & traversal.assigned_in(*before)
            or traversal.loads(inner.stop)
        ):
            return (), False
        inside = self.known.body(loop).facts
        at_start = inside.copy()
        for stmt in before:
            places = _places(stmt, array)
            stop = inside.form(inner.stop)
            if places is None or not all(inside.nonnegative(inside.form(place) - stop) for place in places):
                return (), False
            inside.learn(stmt)
        body = (*before, inner, *loop.body[k + 1 :])
        if loop.target in traversal.free_vars(inner.stop):
            return body, True
        return (*self._behind(array, loop.target, inner.stop, at_start), *body), False

    def _behind(self, array: Var, row: Var, start: Expr, inside: SymbolicBounds) -> Block:
        """Zeros from a position of a row to its end."""
        last = dim(array, 1)
        if inside.nonnegative(inside.form(start) - inside.form(last)):
            return ()
        if not inside.nonnegative(inside.form(start)):
            start = Call(max, (start, Const(0)), (), INT)
        counter = Var(self.names.fresh("k"), INT)
        return (For(counter, start, last, Const(1), (Store(array, (row, counter), Const(0.0)),)),)

    def _rows(self, array: Var, start: Expr) -> list[Stmt]:
        """Zeros in the rows that no iteration visits."""
        facts = self.known.facts
        if facts.nonnegative(facts.form(start) - facts.form(dim(array, 0))):
            return []
        if not facts.nonnegative(facts.form(start)):
            start = Call(max, (start, Const(0)), (), INT)
        row = Var(self.names.fresh("row"), INT)
        return [For(row, start, dim(array, 0), Const(1), self._zero(array, (row,)))]

    def _zero(self, array: Var, index: tuple[Var, ...]) -> Block:
        assert isinstance(array.type, Array)
        axes = range(len(index), array.type.rank)
        counters = [Var(self.names.fresh("k"), INT) for _ in axes]
        body: Block = (Store(array, (*index, *counters), Const(0.0)),)
        for axis, counter in reversed(list(zip(axes, counters, strict=True))):
            body = (For(counter, Const(0), dim(array, axis), Const(1), body),)
        return body


def _storing_loop(loop: Stmt, array: Var, row: Var) -> For | None:
    """A loop that adds once to each element of a row from the first one on, as a loop that stores."""
    assert isinstance(loop, For)
    if loop.start != Const(0) or loop.step != Const(1) or loop.target in traversal.assigned_in(*loop.body):
        return None
    touching = [stmt for stmt in loop.body if array in traversal.reads(stmt)]
    match touching:
        case [Store(index=index, value=value, accumulate=True) as found] if index == (row, loop.target):
            if found.array == array and array not in traversal.free_vars(value):
                stored = replace(found, accumulate=False)
                return replace(loop, body=tuple(stored if stmt is found else stmt for stmt in loop.body))
    return None


def _places(stmt: Stmt, array: Var) -> list[Any] | None:
    """Where a statement accesses a row; None if it does more than read its elements and store one."""
    if array not in traversal.reads(stmt):
        return []
    if not isinstance(stmt, (Assign, Store)):
        return None
    parts = stmt.headers[1:] if isinstance(stmt, Store) else stmt.headers
    found = [load.index for part in parts for load in traversal.loads(part) if load.array == array]
    if isinstance(stmt, Store) and stmt.array == array:
        found.append(stmt.index)
    return [index[1] for index in found] if all(len(index) == 2 for index in found) else None


def _end(loop: For) -> Expr:
    """The row after the last one that a loop through rows from 0 visits."""
    return loop.stop if loop.step == Const(1) else plus(loop.start, 1)


def _without_zeros(stmt: Stmt) -> Stmt:
    assert isinstance(stmt, Assign) and isinstance(stmt.value, Call)
    return replace(stmt, value=replace(stmt.value, func=np.empty))


def _touches_row(stmt: Stmt, array: Var, row: Var) -> bool:
    """Whether a statement (nested ones aside) accesses elements of one row alone."""
    parts = stmt.headers
    if isinstance(stmt, Store) and stmt.array == array:
        if stmt.index[:1] != (row,):
            return False
        parts = parts[1:]
    return all(_reads_row(part, array, row) for part in parts)


def _reads_row(part: Any, array: Var, row: Var) -> bool:
    if array not in traversal.free_vars(part):
        return True
    match part:
        case Var():
            return False
        case Call(intrinsics.dim | intrinsics.shape, (Var(), *_)):
            return True
        case Load(read, index) if read == array:
            return index[:1] == (row,) and all(_reads_row(item, array, row) for item in index)
    return all(_reads_row(each, array, row) for each in traversal.parts(part))
