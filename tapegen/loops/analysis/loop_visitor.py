"""Visitor of the innermost loops of a program without array statements, with the facts about integers at each point."""

from __future__ import annotations

import abc
from functools import cached_property
from typing import Any

from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import BACKWARD, FORWARD, NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Comment, Expr, For, Function, If, Load, Stmt, Store, Var, While
from tapegen.loops.analysis.block_queries import names_in
from tapegen.loops.analysis.dependence import Access, AliasSets, LoopNest, alias_sets, in_loops
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds, dim


class InnermostLoopPass(abc.ABC):
    """Rewrites the innermost loops of one function by `rewrite`."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.known = FlowFacts()
        self.backward = function.backward

    @cached_property
    def memory(self) -> AliasSets:
        """Which variables may share memory."""
        return alias_sets(self.function)

    @cached_property
    def names(self) -> NameSupply:
        """The supply of fresh names."""
        return NameSupply(names_in(self.function))

    @property
    def facts(self) -> SymbolicBounds:
        """The facts at the current point."""
        return self.known.facts

    def concerns(self, stmt: Stmt) -> bool:
        """Whether a loop or a branch may contain loops to rewrite."""
        return True

    @abc.abstractmethod
    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The statements that replace a loop around assignments of scalars and elements.

        Parameters
        ----------
        nest : LoopNest
            The loop.
        before : list of Stmt
            The statements before it in its block, as far as they are finished.
        outside : FlowFacts
            The facts before it; `self.facts` are those of an iteration.
        """

    def block(self, block: Block) -> Block:
        if _LOOPS.isdisjoint(map(type, traversal.statements(block))):
            return block  # nobody asks what is known in it
        out: list[Stmt] = []
        stmt: Any
        for stmt in block:
            kind = type(stmt)
            if kind in _LOOPS and self.concerns(stmt):
                out += self._loop(stmt, out)
            elif kind is Comment:
                if stmt.text in (FORWARD, BACKWARD):
                    self.backward = stmt.text == BACKWARD  # a checkpointed loop runs forward inside the backward sweep
                out.append(stmt)
            else:
                out.append(self._branches(stmt) if kind is If and self.concerns(stmt) else stmt)
                self.known.learn(stmt)
        return tuple(out)

    def replaced(self, stmt: For | While, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The statements that replace any loop; `self.facts` are those of an iteration."""
        nest = in_loops((stmt,), stmt.body) if isinstance(stmt, For) else None
        if nest is None:
            return [traversal.with_blocks(stmt, (self.block(stmt.body),))]
        return self.rewrite(nest, before, outside)

    def _loop(self, stmt: For | While, before: list[Stmt]) -> list[Stmt]:
        outer = self.known
        self.known = outer.body(stmt)
        result = self.replaced(stmt, before, outer)
        self.known = outer
        return result

    def _branches(self, stmt: If) -> Stmt:
        outer = self.known
        sides = []
        for block, self.known in zip((stmt.body, stmt.orelse), outer.sides(stmt), strict=True):
            sides.append(self.block(block))
        self.known = outer
        return traversal.with_blocks(stmt, tuple(sides))

    def may_alias(self, array: Var, index: tuple, other: Access) -> bool:
        """Whether an element may be that of an access, for all values of the scalars in both indices."""
        if self.memory.group(array) != self.memory.group(other.array):
            return False
        return array != other.array or not self.never_equal(index, other.index)

    def never_equal(self, a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
        """Whether two elements differ on some axis, for all values of the scalars in their indices."""
        return never_equal(a, b, self.facts)


_LOOPS: frozenset[type[Stmt]] = frozenset({For, While})


def never_equal(a: tuple[Expr, ...], b: tuple[Expr, ...], facts: SymbolicBounds) -> bool:
    """Whether two elements differ on some axis, for all values of the scalars in their indices that facts allow."""
    if any(traversal.loads(item) for item in (*a, *b)):
        return False
    gaps = (facts.form(x) - facts.form(y) for x, y in zip(a, b, strict=True))
    return any(facts.nonnegative(gap - 1) or facts.nonnegative(-gap - 1) for gap in gaps)


def _mentioned(index: tuple[Expr, ...]) -> set[Var]:
    return {var for item in index for var in traversal.free_vars(item)}


def already_accessed(load: Load, before: list[Stmt]) -> bool:
    """Whether a block has read or stored the element already, so that it is within bounds."""
    names = {load.array, *_mentioned(load.index)}  # type: ignore[arg-type]
    for stmt in reversed(before):
        if names & traversal.assigned_in(stmt):
            return False
        if isinstance(stmt, Store) and (stmt.array, stmt.index) == (load.array, load.index):
            return True
        if isinstance(stmt, (Assign, Store)) and load in unconditional_loads(stmt.value):
            return True
    return False


def is_within(load: Load | Access, facts: SymbolicBounds) -> bool:
    """Whether an element is known to exist."""
    for axis, item in enumerate(load.index):
        form, size = facts.form(item), facts.form(dim(load.array, axis))  # type: ignore[arg-type]
        if not facts.nonnegative(form) or not facts.nonnegative(size - 1 - form):
            return False
    return True


def unconditional_loads(value: Expr) -> list[Load]:
    """The elements that an expression reads unconditionally."""
    calls = [part for part in traversal.subexpressions(value) if isinstance(part, Call)]
    return [] if any(call.func in _CONDITIONAL for call in calls) else traversal.loads(value)


_CONDITIONAL = frozenset({intrinsics.ifelse, intrinsics.and_, intrinsics.or_})
