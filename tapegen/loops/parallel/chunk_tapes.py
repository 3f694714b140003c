"""Tapes that iterations of a loop extend: each chunk has its own, and they become one in the order of the chunks.

Afterwards the tape is what the loop in order leaves.  Iterations may keep where they end on it, as the backward sweep
needs it: a chunk counts from the start of its own tape, and what lies before that is added to these positions later.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.affine import Affine, linear, plus, times
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Const, Effect, Expr, For, If, Load, Stmt, Store, Var, While
from tapegen.ir.types import BOOL, INT, STATIC, Array, ListOf, Scalar, Type
from tapegen.loops.parallel.chunk_arrays import extent, extents_of, range_of_chunk
from tapegen.loops.parallel.work import trips_of
from tapegen.transform.recording.tape_layout import START_SIZE


@dataclass(frozen=True)
class Stack:
    """Tapes that grow together.

    Attributes
    ----------
    counter : Var
        The number of values on each.
    tapes : tuple of Var
        The arrays.
    positions : tuple of Stmt
        The stores of the counter, with the loops around them.
    """

    counter: Var
    tapes: tuple[Var, ...]
    positions: Block

    @property
    def variables(self) -> frozenset[Var]:
        """The variables that iterations change."""
        return frozenset({self.counter, *self.tapes})


def stacks_of(loop: For) -> tuple[Stack, ...]:
    """The tapes on which iterations of a loop only put values."""
    inside = traversal.statements(loop.body)
    found: dict[Var, set[Var]] = {}
    for stmt in inside:
        if (growth := _growth(stmt)) is not None:
            found.setdefault(growth[0], set()).update(growth[1])
    stacks = []
    for counter, tapes in sorted(found.items(), key=lambda item: item[0].name):
        positions = _positions(loop.body, counter, traversal.assigned_in(*loop.body))
        if positions is not None and _Uses(counter, tapes, inside).only_put(loop.body, set()):
            stacks.append(Stack(counter, tuple(sorted(tapes, key=lambda var: var.name)), positions))
    return tuple(stacks)


def _growth(stmt: Stmt) -> tuple[Var, set[Var]] | None:
    """The counter and the tapes of a statement that makes tapes longer."""
    match stmt:
        case If(Call(operator.gt, (Var() as counter, Call(intrinsics.dim, (Var() as sized, Const(0))))), body, ()):
            tapes = {inner.targets[0] for inner in body if _doubles(inner)}
            if len(tapes) == len(body) and sized in tapes:
                return counter, tapes
    return None


def _doubles(stmt: Stmt) -> bool:
    match stmt:
        case Assign((target,), Call(intrinsics.grown, (Var() as full,))):
            return target == full
    return False


class _Uses:
    """Follows the statements of an iteration to see whether they use tapes as stacks on which values are put."""

    def __init__(self, counter: Var, tapes: Set[Var], inside: Sequence[Stmt]) -> None:
        self.counter, self.tapes = counter, tapes
        self.known = {counter, *tapes, *(stmt.array for stmt in inside if _keeps(stmt, counter))}  # type: ignore[union-attr]

    def only_put(self, block: Block, tops: set[Var]) -> bool:
        """Whether a block does so; `tops` are names of the place of the last value."""
        for stmt in block:
            match stmt:
                case If() if (growth := _growth(stmt)) is not None and not self.tapes.isdisjoint(growth[1]):
                    if growth[0] != self.counter:
                        return False
                    continue
                case Assign((target,), value) if target == self.counter:
                    if linear(value) != Affine.atom(self.counter) + 1:
                        return False
                    tops.clear()
                    continue
                case Assign((target,), value) if self._is_top(value, tops) and target not in self.known:
                    tops.add(target)
                    continue
                case Store(array, (first, *rest), value, False) if array in self.tapes:
                    if not self._is_top(first, tops) or self._occur((*rest, value), tops):
                        return False
                    continue
                case Store(array, index, _, False) if array in self.known and _keeps(stmt, self.counter):
                    if self._occur(index, tops):
                        return False
                    continue
            if self._occur(stmt.headers, tops) or not (self.known | tops).isdisjoint(stmt.targets):
                return False
            if isinstance(stmt, Store) and stmt.array in self.known:
                return False
            inner = tops
            if any(self.counter in traversal.assigns(part) for nested in stmt.blocks for part in nested):
                inner = set() if isinstance(stmt, (For, While)) else tops
            if not all(self.only_put(nested, set(inner)) for nested in stmt.blocks):
                return False
            if self.counter in traversal.assigns(stmt):
                tops.clear()
        return True

    def _is_top(self, value: Any, tops: Set[Var]) -> bool:
        return value in tops if isinstance(value, Var) else linear(value) == Affine.atom(self.counter) - 1

    def _occur(self, parts: Sequence[Any], tops: Set[Var]) -> bool:
        """Whether expressions read more of tapes than the shape of a value."""

        def without_shapes(node: Any) -> Any:
            match node:
                case Call(intrinsics.dim, (Var() as array, Const(int() as axis))) if array in self.tapes and axis:
                    return Const(0)
            return node

        rest = [traversal.map_expr(part, without_shapes) for part in parts]
        return any(not (self.known | tops).isdisjoint(traversal.free_vars(part)) for part in rest)


def _keeps(stmt: Stmt, counter: Var) -> bool:
    """Whether a statement stores the number of values."""
    return isinstance(stmt, Store) and stmt.value == counter


def _positions(block: Block, counter: Var, changing: Set[Var]) -> Block | None:
    """The stores of a counter and the loops around them; None if these depend on what else iterations compute."""
    found: list[Stmt] = []
    for stmt in block:
        if not any(_keeps(inner, counter) for inner in traversal.statements((stmt,))):
            continue
        headers = stmt.headers if isinstance(stmt, For) else stmt.index if isinstance(stmt, Store) else None
        if headers is None or any(
            traversal.loads(part) or not changing.isdisjoint(traversal.free_vars(part)) for part in headers
        ):
            return None
        if isinstance(stmt, For):
            inner = _positions(stmt.body, counter, changing - {stmt.target})
            if inner is None:
                return None
            found.append(replace(stmt, body=inner))
        else:
            found.append(stmt)
    return tuple(found)


class ChunkTapes:
    """The statements by which each chunk extends tapes of its own.

    Parameters
    ----------
    stack : Stack
        Tapes of a loop.
    loop : For
        The loop.
    chunk, chunks : Var
        The number of a chunk in the function that runs it, and how many there are.
    names : NameSupply
        The supply of fresh names.
    """

    def __init__(self, stack: Stack, loop: For, chunk: Var, chunks: Var, names: NameSupply) -> None:
        self.stack, self.loop, self.chunk, self.chunks, self.names = stack, loop, chunk, chunks, names
        self.origin = loop.origin
        self.own = {var: self._fresh(var.name, var.type) for var in (stack.counter, *stack.tapes)}
        self.counts = self._fresh(f"{stack.counter.name}_parts", Array(INT.dtype, 1, "C"))
        self.parts = {tape: self._fresh(f"{tape.name}_parts", ListOf(tape.type)) for tape in stack.tapes}
        self.unused = {tape: self._fresh("unused", tape.type) for tape in stack.tapes}

    def _fresh(self, name: str, type_: Type) -> Var:
        return Var(self.names.fresh(name), type_)

    def before(self) -> list[Stmt]:
        """Before the chunks run: places for their tapes."""
        made: list[Stmt] = [self._set(self.counts, builders.new_array(np.empty, (self.chunks,), self.counts.type))]
        for tape, parts in self.parts.items():
            unused = self.unused[tape]
            made.append(self._set(unused, builders.new_array(np.empty, (Const(0), *extents_of(tape)[1:]), tape.type)))
            single = Call(intrinsics.new_list, (unused,), (), parts.type)
            made.append(self._set(parts, Call(operator.mul, (single, self.chunks), (), parts.type)))
        return made

    def first(self) -> list[Stmt]:
        """At the start of a chunk: empty tapes."""
        made: list[Stmt] = [self._set(self.own[self.stack.counter], Const(0))]
        for tape in self.stack.tapes:
            sizes = (Const(START_SIZE), *extents_of(tape)[1:])
            made.append(self._set(self.own[tape], builders.new_array(np.empty, sizes, tape.type)))
        return made

    def last(self) -> list[Stmt]:
        """At the end of a chunk: hand the tapes over."""
        made: list[Stmt] = [Store(self.counts, (self.chunk,), self.own[self.stack.counter], False, self.origin)]
        return [*made, *(self._put(tape, self.chunk, self.own[tape]) for tape in self.stack.tapes)]

    def after(self) -> list[Stmt]:
        """After the chunks have run: put their tapes behind each other."""
        counter, counts = self.stack.counter, self.counts
        k, total, count = (self._fresh(name, INT) for name in ("k", "total", "count"))
        number = Load(counts, (k,), INT)
        found: list[Stmt] = [
            self._set(total, counter),
            self._over(k, self.chunks, (self._set(total, plus(total, number)),)),
        ]
        copies: list[Stmt] = [self._set(count, number)]
        for tape, parts in self.parts.items():
            longer, part = (self._fresh(name, tape.type) for name in (f"{tape.name}_longer", f"{tape.name}_part"))
            size = Call(max, (total, times(Const(2), extent(tape, 0))), (), INT)
            enlarge = (
                self._set(longer, builders.new_array(np.empty, (size, *extents_of(tape)[1:]), tape.type)),
                self._copied(longer, Const(0), tape, counter),
                self._set(tape, longer),
            )
            found.append(If(Call(operator.gt, (total, extent(tape, 0)), (), BOOL), enlarge, (), self.origin))
            copies.append(self._set(part, Call(intrinsics.item, (parts, k), (), tape.type)))
            copies.append(self._copied(tape, counter, part, count))
            copies.append(self._put(tape, k, self.unused[tape]))  # frees the memory
        if self.stack.positions:
            trips = self._fresh("trips", INT)
            found.append(self._set(trips, trips_of(self.loop)))
            start, stop = range_of_chunk(self.loop, k, self.chunks, trips)
            loop = replace(
                self.loop, start=start, stop=stop, body=traversal.map_block(self.stack.positions, self._moved)
            )
            counters = {stmt.target for stmt in traversal.statements((loop,)) if isinstance(stmt, For)}
            new = {var: self._fresh(var.name, var.type) for var in sorted(counters, key=lambda var: var.name)}
            copies += traversal.rename_block((loop,), new)
        copies.append(self._set(counter, plus(counter, count)))
        return [*found, self._over(k, self.chunks, tuple(copies))]

    def _set(self, var: Var, value: Expr) -> Assign:
        return Assign((var,), value, self.origin)

    def _over(self, counter: Var, stop: Expr, body: Block) -> For:
        return For(counter, Const(0), stop, Const(1), body, self.origin)

    def _put(self, tape: Var, chunk: Var, value: Var) -> Effect:
        return Effect(Call(intrinsics.set_item, (self.parts[tape], chunk, value), (), STATIC), self.origin)

    def _copied(self, target: Var, start: Expr, source: Var, count: Var) -> For:
        """Copy the first values of one tape behind those of the other."""
        assert isinstance(source.type, Array)
        counters = [self._fresh(name, INT) for name in "rjlmnpq"[: source.type.rank]]
        first, *rest = counters
        value = Load(source, tuple(counters), Scalar(source.type.dtype, False))
        body: Block = (Store(target, (plus(start, first), *rest), value, False, self.origin),)
        for axis in range(len(rest), 0, -1):
            body = (self._over(counters[axis], extent(source, axis), body),)
        return self._over(first, count, body)

    def _moved(self, stmt: Stmt) -> Stmt:
        """A stored position that counts what lies before the tape of the chunk."""
        if isinstance(stmt, Store):
            return replace(stmt, accumulate=True)
        return traversal.with_blocks(stmt, tuple(traversal.map_block(block, self._moved) for block in stmt.blocks))
