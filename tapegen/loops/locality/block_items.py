"""Block items: the statements of a block as units that passes move, with their comments, loop nests and sweeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import is_int
from tapegen.ir.names import BACKWARD, FORWARD
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Comment,
    Const,
    Expr,
    For,
    Function,
    If,
    Raise,
    Return,
    Routine,
    Slice,
    Stmt,
    Store,
    Tuple,
    While,
)
from tapegen.ir.types import Scalar
from tapegen.loops.analysis.dependence import LoopNest, alias_sets, loop_around, nest_of
from tapegen.loops.analysis.flow_facts import FlowFacts

BOTH = "---- both sweeps in one loop -----------------------------------------"
_FEW = 16  # elements along an axis


@dataclass(eq=False)
class BlockItem:
    """A statement of a block with the comments before it."""

    stmt: Stmt
    comments: list[Stmt] = field(default_factory=list)
    nest: LoopNest | None = None
    backward: bool = False  # of the backward sweep

    @cached_property
    def around(self) -> LoopNest | None:
        """The outermost loop of the statement alone, if it raises no error: its body may hold loops and branches."""
        return loop_around(self.stmt)

    @cached_property
    def role(self) -> Literal["check", "plain", "element", "other"]:
        """The kind of the statement: a check for an error, the definition of a value, a store of a scalar, or other."""
        match self.stmt:
            case If(_, (*_, Raise()), ()):
                return "check"
            case Assign((_,), value):
                return "other" if has_effects(value) else "plain"
            case Store(_, index, value):
                scalars = all(isinstance(part.type, Scalar) for part in (value, *index))  # type: ignore[union-attr]
                return "element" if scalars and not any(map(has_effects, (value, *index))) else "other"
        return "other"


def has_effects(expr: Expr | Slice) -> bool:
    """Whether the evaluation of an expression changes something."""
    called = traversal.callees(expr)
    return any(func in _EFFECTS or intrinsics.changes(func) or type(func) is Routine for func in called)


_EFFECTS: frozenset[Any] = frozenset({intrinsics.append, intrinsics.set_item, intrinsics.tell, print})


class BlockPass(ABC):
    """Rewrites the blocks of one function as sequences of items, from the outermost block to the innermost."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.memory = alias_sets(function)
        self.known = FlowFacts()
        self.hoisted: list[Stmt] = []  # statements that the last visited loop hoists into the block around it
        self.backward = function.backward  # whether the visited block belongs to the backward sweep

    @abstractmethod
    def arrange(self, items: list[BlockItem]) -> list[BlockItem]:
        """The items of a block, reordered or merged; nested blocks are not visited yet."""

    def place(self, out: list[BlockItem], item: BlockItem) -> None:
        """Place a loop nest after the items before it."""
        out.append(item)

    def written(self, item: BlockItem) -> Stmt:
        """The statement of an item."""
        return item.stmt

    def sweeps(self, items: list[BlockItem]) -> list[bool]:
        """Whether items come after the comment that begins the backward sweep."""
        return [item.backward for item in items]

    def hoists(self, body: Block, loop: For | While) -> list[Stmt]:
        """The statements of a loop's body that are hoisted before the loop."""
        return []

    def nested(self, block: Block) -> Block:
        """The new block in place of one in a loop or branch."""
        return block if For not in map(type, traversal.statements(block)) else self.block(block)

    def block(self, block: Block) -> Block:
        """The new block."""
        items, tail = items_of(block)
        out: list[BlockItem] = []
        for item in self.arrange(items):
            if item.nest is not None:
                self.place(out, item)
                self.known.learn(item.stmt)
            else:
                outer, self.backward = self.backward, self.backward or item.backward
                stmt = self._inside(item.stmt)
                self.backward = outer
                out += [BlockItem(each, backward=item.backward) for each in self.hoisted]
                self.hoisted = []
                out.append(BlockItem(stmt, item.comments, backward=item.backward))
        stmts: list[Stmt] = []
        if any(isinstance(stmt, Comment) and stmt.text == FORWARD for stmt in block):
            stmts.append(Comment(FORWARD))
        before = False
        for item, backward in zip(out, self.sweeps(out), strict=True):
            if backward != before and not isinstance(item.stmt, Return):
                stmts.append(Comment(BACKWARD if backward else FORWARD))
                before = backward
            stmts += [*item.comments, self.written(item)]
        return (*stmts, *tail)

    def _inside(self, stmt: Any) -> Stmt:
        """A statement with its nested blocks rewritten; what it implies for integers is recorded."""
        kind = type(stmt)
        if kind is For or kind is While:
            outer = self.known
            self.known = outer.body(stmt)
            body = self.nested(stmt.body)
            self.known = outer
            hoisted = self.hoists(body, stmt)
            self.hoisted += hoisted
            return traversal.with_blocks(stmt, (remove_statements(body, {*hoisted}) if hoisted else body,))
        new = self._branches(stmt) if kind is If else stmt
        self.known.learn(stmt)
        return new

    def _branches(self, stmt: If) -> Stmt:
        outer = self.known
        sides = []
        for block, self.known in zip((stmt.body, stmt.orelse), outer.sides(stmt), strict=True):
            sides.append(self.nested(block))
        self.known = outer
        return traversal.with_blocks(stmt, tuple(sides))

    def lasting_allocations(self, body: Block, loop: For | While) -> list[Stmt]:
        """New arrays that serve all iterations of a loop: they still hold the elements of the previous iteration."""
        found: list[Stmt] = []
        for stmt in body:
            if type(stmt) is If:
                made = [each for side in stmt.blocks for each in self.lasting_allocations(side, loop)]
                found += [each for each in made if _is_no_larger(each)]
            elif self._serves_all(stmt, loop):
                found.append(stmt)
        return found

    def _serves_all(self, stmt: Stmt, loop: For | While) -> bool:
        if not isinstance(stmt, Assign) or self.memory.own(stmt.targets[0]) is None:
            return False
        if not is_new(stmt) and stmt.targets[0] not in self.memory.padded:
            return False
        assert isinstance(stmt.value, Call)
        shape = stmt.value.args[0]
        if traversal.free_vars(shape) & traversal.assigned_in(loop) or traversal.loads(shape):
            return False
        sizes = shape.items if isinstance(shape, Tuple) else () if not is_int(shape) else (shape,)
        facts = self.known.facts
        return all(facts.nonnegative(facts.form(size)) for size in sizes)


def _is_no_larger(stmt: Stmt) -> bool:
    """Whether a new array is small or no larger than one that exists: there is room for it although it may be idle."""
    assert isinstance(stmt, Assign) and isinstance(stmt.value, Call)
    shape = stmt.value.args[0]
    sizes = shape.items if isinstance(shape, Tuple) else (shape,)
    extents = {size.args for size in sizes if isinstance(size, Call) and size.func is intrinsics.dim}
    few = [size for size in sizes if isinstance(size, Const) and isinstance(size.value, int) and size.value <= _FEW]
    return len(extents) + len(few) == len(sizes) and len({array for array, _ in extents}) <= 1


def is_new(stmt: Stmt) -> bool:
    """Whether a statement creates an uninitialized array."""
    return isinstance(stmt, Assign) and isinstance(stmt.value, Call) and stmt.value.func is np.empty


def items_of(block: Block) -> tuple[list[BlockItem], list[Stmt]]:
    """The statements of a block, and the comments at its end."""
    items: list[BlockItem] = []
    comments: list[Stmt] = []
    backward = False
    stmt: Any
    for stmt in block:
        kind = type(stmt)
        if kind is not Comment:
            items.append(BlockItem(stmt, comments, nest_of(stmt) if kind is For else None, backward))
            comments = []
        elif stmt.text in (FORWARD, BACKWARD):
            backward = stmt.text == BACKWARD
        else:
            comments.append(stmt)
    return items, comments


def sweeps_apart(items: list[BlockItem]) -> list[bool]:
    """Whether items belong to the backward sweep, which begins after the whole forward sweep.

    Statements that were hoisted belong to neither.
    """
    start = max((k + 1 for k, item in enumerate(items) if not item.backward), default=0)
    return [k >= start for k in range(len(items))]


def merged_comments(first: BlockItem, second: BlockItem) -> list[Stmt]:
    """The comments before a loop that two loops have been merged into."""
    if second.backward and not first.backward and not any(map(_is_both, first.comments)):
        return [Comment(BOTH), *first.comments]
    return first.comments


def _is_both(stmt: Stmt) -> bool:
    return isinstance(stmt, Comment) and stmt.text == BOTH


def remove_statements(block: Block, gone: set[Stmt]) -> Block:
    """A block without some of its statements."""
    remaining: Iterable[Stmt] = (stmt for stmt in block if stmt not in gone)
    return tuple(
        traversal.with_blocks(stmt, tuple(remove_statements(inner, gone) for inner in stmt.blocks))
        for stmt in remaining
    )
