"""Dead code elimination by mark and sweep, for structured programs: what no live statement needs is removed.

A client says which statements may be removed where nothing needs them.  All others are live.  A live statement needs
the definitions of the variables that it reads, and the compound statements around it.  Of an array that is only
measured or stored into, it needs the allocation alone, not the stores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Set
from dataclasses import replace

from tapegen.ir import builders, traversal
from tapegen.ir.nodes import Assign, Block, Comment, Expr, If, Stmt, Store, Tuple, Var
from tapegen.ir.types import ListOf, Scalar


def remove_dead(
    block: Block,
    live_out: Collection[Var],
    may_go: Callable[[Stmt], bool],
    root_of: Callable[[Var], Var] = lambda var: var,
) -> Block:
    """A block without its dead statements.

    Parameters
    ----------
    block : Block
        The statements.
    live_out : collection of Var
        The variables that are read after them.
    may_go : callable
        Whether an assignment, a store or a compound statement may be removed where nothing needs it; the assignments
        of several values at once are asked one by one.  A comment goes with the block that it stands in, or at once.
    root_of : callable
        One of the variables that may share memory with an array or list.
    """
    marking = _Marking(root_of)
    marking.enter(block, -1)
    marking.follow(live_out)
    marking.keep_others(may_go)  # asked about little: most statements are live
    if marking.is_complete():
        return block
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

    def __init__(self, root_of: Callable[[Var], Var]) -> None:
        self.root_of = root_of
        self.parents: list[int] = []
        self.statements: list[Stmt] = []
        self.live: set[int] = set()
        self.dead_targets: dict[int, set[Var]] = {}  # of parallel assignments
        self.definitions: defaultdict[Var, list[int]] = defaultdict(list)
        self.stores: defaultdict[Var, list[int]] = defaultdict(list)  # by the root of their array
        self.defined: set[Var] = set()  # variables whose definitions are live
        self.read: set[Var] = set()  # variables whose values or contents are read
        self.needed: list[int] = []
        self.values: list[Expr] = []  # that live statements compute

    def enter(self, block: Block, parent: int) -> None:
        """Note what statements define."""
        for stmt in block:
            here = len(self.parents)
            self.parents.append(parent)
            self.statements.append(stmt)
            if type(stmt) is Assign:
                for target in stmt.targets:
                    self.definitions[target].append(here)
                if len(stmt.targets) > 1 and type(stmt.value) is Tuple:
                    self.dead_targets[here] = set(stmt.targets)
            elif type(stmt) is Store:
                self.stores[self.root_of(stmt.array)].append(here)
            else:
                for inner in stmt.blocks:
                    self.enter(inner, here)

    def is_complete(self) -> bool:
        """Whether nothing is dead, nor assigns a variable to itself, nor has an empty branch."""
        if len(self.live) < len(self.statements) or any(self.dead_targets.values()):
            return False
        return not any(
            stmt.targets == (stmt.value,) if type(stmt) is Assign else type(stmt) is If and not acts(stmt.body)
            for stmt in self.statements
        )

    def keep_others(self, may_go: Callable[[Stmt], bool]) -> None:
        """Mark the statements that nothing needs and that may not be removed either, and what they need."""
        for here in reversed(range(len(self.statements))):  # what a statement needs stands before it, as a rule
            stmt = self.statements[here]
            if here in self.dead_targets and isinstance(stmt, Assign):
                for target, value in traversal.pairs(stmt):
                    if target not in self.defined and not may_go(Assign((target,), value, stmt.origin)):
                        self._define(target)
            elif here in self.live or may_go(stmt):
                continue
            elif type(stmt) is Comment:
                self.live.add(here)  # without a need for what is around it
            else:
                self.needed.append(here)
            self.follow(())

    def follow(self, live_out: Collection[Var]) -> None:
        """Mark what live statements need."""
        if live_out:
            self._read(frozenset(live_out))
        needed, values, live = self.needed, self.values, self.live
        while needed or values:
            while values:
                contents, shapes = traversal.reads_by_kind(values.pop())
                if not contents <= self.read:
                    self._read(contents)
                for var in shapes:
                    if type(var.type) is ListOf:
                        self._read(frozenset((var,)))
                    else:
                        self._define(var)
            while needed:
                here = needed.pop()
                if here not in live:
                    stmt = self.statements[here]
                    self._keep(here)
                    if type(stmt) is Store:
                        self._define(stmt.array)
                    values += traversal.value_headers(stmt)

    def _read(self, found: Set[Var]) -> None:
        new = found - self.read
        self.read |= new
        for var in new:
            if type(var.type) is not Scalar and (root := self.root_of(var)) in self.stores:
                self.needed += self.stores.pop(root)
            self._define(var)

    def _define(self, var: Var) -> None:
        if var in self.defined:
            return
        self.defined.add(var)
        for here in self.definitions.get(var, ()):
            stmt = self.statements[here]
            if here in self.dead_targets and isinstance(stmt, Assign):
                self.dead_targets[here].discard(var)
                self.values += [value for target, value in traversal.pairs(stmt) if target == var]
                self._keep(here)
            else:
                self.needed.append(here)

    def _keep(self, here: int) -> None:
        self.live.add(here)
        if (parent := self.parents[here]) >= 0 and parent not in self.live:
            self.needed.append(parent)

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
