"""Dead code elimination by mark and sweep, for structured programs: what no live statement needs is removed.

A client says which statements may be removed where nothing needs them.  All others are live.  A live statement needs
the definitions of the variables that it reads, and the compound statements around it.  Of an array that is only
measured or stored into, it needs the allocation alone, not the stores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import replace

from tapegen.ir import builders, traversal
from tapegen.ir.nodes import Assign, Block, Comment, Expr, If, Stmt, Store, Tuple, Var
from tapegen.ir.types import ListOf


def remove_dead(
    block: Block,
    live_out: Iterable[Var],
    may_go: Callable[[Stmt], bool],
    root_of: Callable[[Var], Var] = lambda var: var,
) -> Block:
    """A block without its dead statements.

    Parameters
    ----------
    block : Block
        The statements.
    live_out : iterable of Var
        The variables that are read after them.
    may_go : callable
        Whether an assignment, a store or a compound statement may be removed where nothing needs it; the assignments
        of several values at once are asked one by one.  A comment goes with the block that it stands in, or at once.
    root_of : callable
        One of the variables that may share memory with an array or list.
    """
    marking = _Marking(may_go, root_of)
    marking.enter(block, -1)
    marking.follow(live_out)
    return marking.remaining(block, iter(range(len(marking.parents))))


def with_remaining(stmt: Stmt, blocks: tuple[Block, ...]) -> Stmt:
    """A compound statement with what remains of its blocks; the test of an empty branch is negated."""
    if isinstance(stmt, If) and not acts(blocks[0]) and acts(blocks[1]):
        return replace(stmt, test=builders.not_(stmt.test), body=blocks[1], orelse=())
    return traversal.with_blocks(stmt, blocks)


def acts(block: Block) -> bool:
    """Whether a block has more than comments."""
    return any(type(stmt) is not Comment for stmt in block)


class _Marking:
    """Statements by their position in the text."""

    def __init__(self, may_go: Callable[[Stmt], bool], root_of: Callable[[Var], Var]) -> None:
        self.may_go, self.root_of = may_go, root_of
        self.parents: list[int] = []
        self.statements: list[Stmt] = []
        self.live: set[int] = set()
        self.dead_targets: dict[int, set[Var]] = {}  # of parallel assignments
        self.definitions: defaultdict[Var, list[tuple[int, Expr]]] = defaultdict(list)
        self.stores: defaultdict[Var, list[int]] = defaultdict(list)  # by the root of their array
        self.defined: set[Var] = set()  # variables whose definitions are live
        self.read: set[Var] = set()  # roots whose contents are read
        self.needed: list[int] = []
        self.to_define: list[Var] = []
        self.to_read: list[Var] = []

    def enter(self, block: Block, parent: int) -> None:
        """Note what may be removed, and what is live in any case."""
        for stmt in block:
            here = len(self.parents)
            self.parents.append(parent)
            self.statements.append(stmt)
            if type(stmt) is Assign:
                self._enter_assignment(stmt, here)
            elif type(stmt) is Comment:
                if not self.may_go(stmt):
                    self.live.add(here)  # without a need for what is around it
            elif not self.may_go(stmt):
                self.needed.append(here)
            elif type(stmt) is Store:
                self.stores[self.root_of(stmt.array)].append(here)
            for inner in stmt.blocks:
                self.enter(inner, here)

    def _enter_assignment(self, stmt: Assign, here: int) -> None:
        if len(stmt.targets) == 1 or not isinstance(stmt.value, Tuple):
            if not self.may_go(stmt):
                self.needed.append(here)
            for target in stmt.targets:
                self.definitions[target].append((here, stmt.value))
            return
        self.dead_targets[here] = set(stmt.targets)
        for target, value in traversal.pairs(stmt):
            self.definitions[target].append((here, value))
            if not self.may_go(Assign((target,), value, stmt.origin)):
                self.to_define.append(target)

    def follow(self, live_out: Iterable[Var]) -> None:
        """Mark what live statements need."""
        self.to_read += live_out
        while self.needed or self.to_define or self.to_read:
            while self.needed:
                self._mark(self.needed.pop())
            while self.to_read:
                var = self.to_read.pop()
                root = self.root_of(var)
                if root not in self.read:
                    self.read.add(root)
                    self.needed += self.stores[root]
                self.to_define.append(var)
            while self.to_define:
                var = self.to_define.pop()
                if var not in self.defined:
                    self.defined.add(var)
                    for here, value in self.definitions[var]:
                        self._define(here, var, value)

    def _define(self, here: int, var: Var, value: Expr) -> None:
        if here in self.dead_targets:
            self.dead_targets[here].discard(var)
            self._note(value)
            self._keep(here)
        else:
            self._mark(here)

    def _mark(self, here: int) -> None:
        if here in self.live:
            return
        self._keep(here)
        stmt = self.statements[here]
        if type(stmt) is Store:
            self.to_define.append(stmt.array)
        for header in traversal.value_headers(stmt):
            self._note(header)

    def _keep(self, here: int) -> None:
        self.live.add(here)
        if (parent := self.parents[here]) >= 0:
            self.needed.append(parent)

    def _note(self, value: Expr) -> None:
        contents, shapes = traversal.reads_by_kind(value)
        self.to_read += contents
        for var in shapes:
            (self.to_read if isinstance(var.type, ListOf) else self.to_define).append(var)

    def remaining(self, block: Block, positions: Iterator[int]) -> Block:
        """What remains of a block, whose statements have the next positions."""
        out: list[Stmt] = []
        for stmt in block:
            here = next(positions)
            inner = tuple([self.remaining(part, positions) for part in stmt.blocks])
            if here not in self.live:
                continue
            if inner:
                stmt = with_remaining(stmt, inner)
            elif here in self.dead_targets:
                stmt = _without_targets(stmt, self.dead_targets[here])
            if not isinstance(stmt, Assign) or stmt.targets != (stmt.value,):
                out.append(stmt)
        return block if traversal.same(out, block) else tuple(out)


def _without_targets(stmt: Stmt, dead: Set[Var]) -> Stmt:
    """A parallel assignment without its dead targets."""
    assert isinstance(stmt, Assign)
    if not dead:
        return stmt
    targets, values = zip(*[pair for pair in traversal.pairs(stmt) if pair[0] not in dead], strict=True)
    return Assign(targets, values[0] if len(values) == 1 else Tuple(values), stmt.origin)
