"""Nests of the same loops become one, and arrays that only such a nest touches become numbers.

Two nests are put together where every element that both touch, and one of them writes, is touched on the same trip.
What stands between them moves out of the way where it can: checks and new arrays to the front.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import BACKWARD, FORWARD
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Comment,
    Expr,
    For,
    Function,
    If,
    Load,
    Raise,
    Return,
    Routine,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import Array, Scalar
from tapegen.loops.analysis.affine import is_int
from tapegen.loops.analysis.dependence import Memory, Nest, independent, may_share_loops, nest_of
from tapegen.loops.analysis.flow_facts import Known
from tapegen.loops.legalize import scalar_ops
from tapegen.loops.locality.scatter_to_gather import gathered
from tapegen.loops.vectorize.loop_reversal import eased

BOTH = "---- both sweeps in one loop -----------------------------------------"
_LOOK_BACK = 12  # how many statements a nest may pass on its way to another


def fuse(function: Function) -> Function:
    """The same program with fewer loops and fewer arrays."""
    return _Fusion(eased(function)).run()


@dataclass(eq=False)
class Item:
    """A statement of a block with the comments in front of it."""

    stmt: Stmt
    comments: list[Stmt] = field(default_factory=list)
    nest: Nest | None = None
    backward: bool = False  # of the backward sweep

    @cached_property
    def role(self) -> Literal["check", "plain", "element", "other"]:
        """What it does, if that is to look for an error, to name a value or to store a number, and nothing else."""
        match self.stmt:
            case If(_, (*_, Raise()), ()):
                return "check"
            case Assign((_,), value):
                return "other" if _has_effects(value) else "plain"
            case Store(_, index, value):
                numbers = all(isinstance(part.type, Scalar) for part in (value, *index))  # type: ignore[union-attr]
                return "element" if numbers and not any(map(_has_effects, (value, *index))) else "other"
        return "other"


def _has_effects(expr: Expr | Slice) -> bool:
    called = traversal.callees(expr)
    return not called.isdisjoint(_EFFECTS) or Routine in map(type, called)


_EFFECTS: frozenset[Any] = frozenset({intrinsics.append, intrinsics.set_item, print}) | intrinsics.CHANGING


class _Fusion:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.memory = Memory(function)
        self.known = Known()
        self.before: list[Stmt] = []  # what the loop that was last visited leaves to the block around it
        self.gone: set[Stmt] = set()  # that make arrays which have become numbers

    def run(self) -> Function:
        """The function with its nests put together."""
        body = self._block(self.function.body)
        return replace(self.function, body=_without(body, self.gone) if self.gone else body)

    # ---- the walk ----------------------------------------------------------------------------------------------------

    def _block(self, block: Block) -> Block:
        items, tail = _items(block)
        out: list[Item] = []
        for item in gathered(raised(items, self.memory), self.memory, self.known):
            if item.nest is not None:
                self._place(out, item)
            else:
                stmt = self._inside(item.stmt)
                out += [Item(each, backward=item.backward) for each in self.before]
                self.before = []
                out.append(Item(stmt, item.comments, backward=item.backward))
        stmts: list[Stmt] = []
        if any(isinstance(stmt, Comment) and stmt.text == FORWARD for stmt in block):
            stmts.append(Comment(FORWARD))
        # what has moved to the front belongs to no sweep in particular
        start = max((k + 1 for k, item in enumerate(out) if not item.backward), default=0)
        for k, item in enumerate(out):
            if k == start and not isinstance(item.stmt, Return):
                stmts.append(Comment(BACKWARD))
            stmt = item.stmt if item.nest is None else self._contracted(item.nest).stmt
            stmts += [*item.comments, stmt]
        return (*stmts, *tail)

    def _inside(self, stmt: Stmt) -> Stmt:
        """A statement with the blocks in it rewritten; what it says about integers is remembered."""
        match stmt:
            case For() | While():
                outer = self.known
                self.known = outer.body(stmt)
                body = self._block(stmt.body)
                self.known = outer
                hoisted = [inner for inner in body if self._stays(inner, stmt)]
                self.before += hoisted
                stmt = traversal.with_blocks(stmt, (tuple(inner for inner in body if inner not in hoisted),))
                return stmt
            case If():
                inner = self._branches(stmt)
                self.known.learn(stmt)
                return inner
        self.known.learn(stmt)
        return stmt

    def _stays(self, stmt: Stmt, loop: For | While) -> bool:
        """Whether a new array serves all trips of a loop: its elements are what the trip before has left."""
        if not isinstance(stmt, Assign) or self.memory.own(stmt.targets[0]) is None:
            return False
        if not _is_new(stmt) and stmt.targets[0] not in self.memory.padded:
            return False
        assert isinstance(stmt.value, Call)
        shape = stmt.value.args[0]
        if traversal.free_vars(shape) & traversal.assigned_in(loop) or traversal.loads(shape):
            return False
        sizes = shape.items if isinstance(shape, Tuple) else () if not is_int(shape) else (shape,)
        facts = self.known.facts
        return all(facts.nonnegative(facts.form(size)) for size in sizes)

    def _branches(self, stmt: If) -> Stmt:
        outer = self.known
        sides = []
        for block, self.known in zip((stmt.body, stmt.orelse), outer.sides(stmt), strict=True):
            sides.append(self._block(block))
        self.known = outer
        return traversal.with_blocks(stmt, tuple(sides))

    # ---- putting together --------------------------------------------------------------------------------------------

    def _place(self, out: list[Item], item: Item) -> None:
        """Put a nest into an earlier one, or at the end."""
        assert item.nest is not None
        for k in range(len(out) - 1, max(-1, len(out) - 1 - _LOOK_BACK), -1):
            earlier = out[k]
            ordered = self._keeps_errors(earlier, item)
            if ordered and earlier.nest is not None and self._joins(earlier.nest, item.nest):
                comments = earlier.comments
                if item.backward and not earlier.backward and not any(map(_is_both, comments)):
                    comments = [Comment(BOTH), *comments]
                nest = _joined(earlier.nest, item.nest, item.comments)
                out[k] = replace(earlier, comments=comments, nest=nest)
                return
            if earlier.nest is None and earlier.role != "plain" and (item.nest.checks or earlier.role != "element"):
                break
            other = earlier.stmt if earlier.nest is None else earlier.nest.stmt
            if not ordered or not independent(other, item.stmt, self.memory):
                break
        out.append(item)

    def _keeps_errors(self, earlier: Item, item: Item) -> bool:
        """Whether an error is the same, and leaves the same behind, where trips of a nest come before those of another.

        The backward sweep looks at what the forward sweep has looked at, and finds nothing any more.
        """
        first, second = earlier.nest, item.nest
        if first is None or second is None or not (first.checks or second.checks):
            return True
        if first.checks and second.checks and (earlier.backward or not item.backward):
            return False
        return not (first.checks and self._is_seen(second)) and not (second.checks and self._is_seen(first))

    def _is_seen(self, nest: Nest) -> bool:
        """Whether a nest stores into arrays that may outlive an error."""
        return any(access.writes and self.memory.own(access.array) is None for access in nest.accesses)

    def _joins(self, first: Nest, second: Nest) -> bool:
        if len(first.loops) != len(second.loops):
            return False
        if not all(self._same_size(a.stop, b.stop) for a, b in zip(first.loops, second.loops, strict=True)):
            return False
        if self.memory.lasting & {*first.counters, *second.counters} and first.counters != second.counters:
            return False
        counters = {*first.counters, *second.counters}
        if counters & (first.assigned | second.assigned | first.first_read | second.first_read):
            return False
        return may_share_loops(first, second, self.memory)

    def _same_size(self, a: Expr, b: Expr) -> bool:
        if a == b:
            return True
        facts = self.known.facts
        return facts.equal(facts.form(a), facts.form(b))

    # ---- arrays as numbers -------------------------------------------------------------------------------------------

    def _contracted(self, nest: Nest) -> Nest:
        """The nest with numbers for arrays that are made for it alone."""
        found: dict[Var, list[tuple]] = {}
        for access in nest.accesses:
            found.setdefault(access.array, []).append(access.index)
        for array, indices in found.items():
            if len(set(indices)) == 1 and self.memory.uses.get(array) == len(indices):
                made = self.memory.own(array)
                if made is None or not _is_new(made) or not _starts_with_store(nest, array):
                    continue
                used = {var for item in indices[0] for var in traversal.free_vars(item)}
                if used & nest.assigned or any(traversal.loads(item) for item in indices[0]):
                    continue
                self.gone.add(made)
                nest = nest.with_body(_as_number(nest.body, array))
        return nest


def _items(block: Block) -> tuple[list[Item], list[Stmt]]:
    """The statements of a block, and the comments at its end."""
    items: list[Item] = []
    comments: list[Stmt] = []
    backward = False
    for stmt in block:
        if isinstance(stmt, Comment) and stmt.text in (FORWARD, BACKWARD):
            backward = stmt.text == BACKWARD
        elif isinstance(stmt, Comment):
            comments.append(stmt)
        else:
            items.append(Item(stmt, comments, nest_of(stmt), backward))
            comments = []
    return items, comments


def raised(items: list[Item], memory: Memory) -> list[Item]:
    """Checks and names of values, in front of the nests that do not matter to them."""
    if all(item.nest is None for item in items):
        return items
    out: list[Item] = []
    first: int | None = None  # of the nests in it
    left: list[Stmt] = []  # comments that stood above a statement which has moved, and above the next one
    for item in items:
        if left and not item.comments:
            item = replace(item, comments=left)
        left = []
        place = len(out)
        if first is not None and item.role in ("check", "plain"):
            for k in range(len(out) - 1, first - 1, -1):
                earlier = out[k]
                passable = earlier.role == "plain"
                passable = passable or (earlier.role == "check" and not any(map(traversal.loads, item.stmt.headers)))
                passable = passable or (earlier.nest is not None and not (item.role == "check" and earlier.nest.checks))
                passable = passable or (item.role == "plain" and earlier.role == "element")
                if not passable or not independent(earlier.stmt, item.stmt, memory):
                    break
                if earlier.nest is not None:
                    place = k
        if place < len(out):
            left, item = item.comments, replace(item, comments=[])
        out.insert(place, item)
        if first is None and item.nest is not None:
            first = place
        elif first == place:
            first += 1
    return out


def _joined(first: Nest, second: Nest, comments: list[Stmt]) -> Nest:
    renamed = dict(zip(second.counters, first.counters, strict=True))
    return first.with_body((*first.body, *comments, *traversal.rename_block(second.body, renamed)))


def _is_both(stmt: Stmt) -> bool:
    return isinstance(stmt, Comment) and stmt.text == BOTH


def _is_new(stmt: Stmt) -> bool:
    return isinstance(stmt, Assign) and isinstance(stmt.value, Call) and stmt.value.func is np.empty


def _starts_with_store(nest: Nest, array: Var) -> bool:
    for stmt in nest.body:
        parts = stmt.headers[1:] if isinstance(stmt, Store) else stmt.headers
        if any(array in traversal.free_vars(part) for part in parts):
            return False
        if isinstance(stmt, Store) and stmt.array == array:
            return not stmt.accumulate
    return False


def _as_number(body: Block, array: Var) -> Iterator[Stmt]:
    assert isinstance(array.type, Array)
    number = Var(array.name, Scalar(array.type.dtype, False))

    def element(part: Any) -> Any:
        return number if isinstance(part, Load) and part.array == array else part

    for stmt in body:
        new = traversal.map_headers(stmt, lambda part: traversal.map_expr(part, element))
        if isinstance(stmt, Store) and stmt.array == array:
            value = traversal.map_expr(stmt.value, element)
            if stmt.accumulate:
                value = Call(operator.add, (number, value), (), number.type)
            new = Assign((number,), _rounded(value, array.type.dtype), stmt.origin)
        yield new


def _rounded(value: Expr, dtype: str) -> Expr:
    """A number as an array of that dtype would hold it."""
    if dtype in ("float64", "int64", "bool") or isinstance(value, Load):
        return scalar_ops.convert(value, dtype)
    return Call(getattr(np, dtype), (value,), (), Scalar(dtype, False))


def _without(block: Block, gone: set[Stmt]) -> Block:
    kept = (stmt for stmt in block if stmt not in gone)
    return tuple(traversal.with_blocks(stmt, tuple(_without(inner, gone) for inner in stmt.blocks)) for stmt in kept)
