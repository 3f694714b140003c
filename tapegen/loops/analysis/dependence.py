"""Dependence analysis: loop nests as data, their accesses, and whether two of them may be fused."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from tapegen.analysis.memory_access import sources
from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import linear
from tapegen.ir.disjoint_sets import DisjointSets
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Comment,
    Const,
    Effect,
    Expr,
    For,
    Function,
    If,
    Load,
    Raise,
    Return,
    Routine,
    Stmt,
    Store,
    Var,
)
from tapegen.ir.types import Array, ListOf, Scalar
from tapegen.loops.analysis.block_queries import read_after_loops

Effects = tuple[frozenset[Var], frozenset[Var], frozenset[Var], frozenset[Var]]


@dataclass(frozen=True, eq=False)
class Access:
    """One element that a loop nest reads or writes, with its index in terms of the counters."""

    array: Var
    index: tuple[Expr, ...]
    writes: bool


@dataclass(frozen=True, eq=False)
class LoopNest:
    """A perfect loop nest with counters from zero, around assignments of scalars and elements.

    Attributes
    ----------
    loops : tuple of For
        The loops from the outermost to the innermost.
    body : tuple of Stmt
        The body of the innermost loop.
    accesses : tuple of Access
        Elements that are read or written.
    first_read, assigned : frozenset of Var
        Scalars that are read before the body assigns them (counters aside), and scalars that it assigns.
    checks : bool
        Whether an iteration may raise an error.
    """

    loops: tuple[For, ...]
    body: tuple[Stmt, ...]
    accesses: tuple[Access, ...]
    first_read: frozenset[Var]
    assigned: frozenset[Var]
    checks: bool = False

    @property
    def counters(self) -> tuple[Var, ...]:
        return tuple(loop.target for loop in self.loops)

    @cached_property
    def stmt(self) -> For:
        """The loop nest as a statement."""
        body = self.body
        for loop in reversed(self.loops):
            body = (traversal.with_blocks(loop, (body,)),)
        (outermost,) = body
        assert isinstance(outermost, For)
        return outermost

    @cached_property
    def changing(self) -> set[Var]:
        """Scalars that have more than one value during an iteration."""
        counts = Counter(var for stmt in self.body for var in stmt.targets)
        return {var for var, count in counts.items() if count > 1 or var in self.first_read}

    def with_body(self, body: Iterable[Stmt]) -> LoopNest:
        """The same loops around other statements."""
        nest = in_loops(self.loops, tuple(body))
        assert nest is not None
        return nest


def nest_of(stmt: Stmt) -> LoopNest | None:
    """A statement as a loop nest, if it is one."""
    if type(stmt) is not For:
        return None
    loops: list[For] = []
    body: tuple[Stmt, ...] = (stmt,)
    while len(body) == 1 and type(body[0]) is For:
        loop = body[0]
        if loop.start != Const(0) or loop.step != Const(1):
            break
        if traversal.loads(loop.stop) or traversal.free_vars(loop.stop) & {outer.target for outer in loops}:
            break
        loops.append(loop)
        body = loop.body
    return in_loops(tuple(loops), body) if loops else None


def in_loops(loops: tuple[For, ...], body: tuple[Stmt, ...]) -> LoopNest | None:
    """Statements in loops as a loop nest, if they only assign scalars and elements, and raise errors."""
    checks = False
    accesses: list[Access] = []
    first: set[Var] = set()
    assigned: set[Var] = set()
    for stmt in body:
        if type(stmt) is Comment:
            continue
        found = _accesses(stmt)
        if found is None:
            return None
        accesses += found
        first |= traversal.reads(stmt) - assigned
        if type(stmt) is Assign:
            assigned.update(stmt.targets)
        else:
            checks |= type(stmt) is If
    counters = {loop.target for loop in loops}
    if assigned & counters:
        return None
    numbers = frozenset([var for var in first - counters if type(var.type) is Scalar])
    return LoopNest(loops, body, tuple(accesses), numbers, frozenset(assigned), checks)


def loop_around(stmt: Stmt) -> LoopNest | None:
    """A loop as a nest of depth one, if it only assigns scalars and elements, in inner loops and branches too."""
    if type(stmt) is not For or stmt.start != Const(0) or stmt.step != Const(1) or traversal.loads(stmt.stop):
        return None
    found = _Body()
    if not found.block(stmt.body, {stmt.target}) or stmt.target in found.assigned:
        return None
    numbers = frozenset([var for var in found.first if type(var.type) is Scalar])
    return LoopNest((stmt,), stmt.body, tuple(found.accesses), numbers, frozenset(found.assigned))


class _Body:
    """What the body of a loop accesses, reads before it assigns it, and assigns."""

    def __init__(self) -> None:
        self.accesses: list[Access] = []
        self.first: set[Var] = set()
        self.assigned: set[Var] = set()

    def block(self, block: Block, known: set[Var]) -> bool:
        """Add a block, given the scalars that are assigned before it; False if it does anything else."""
        for stmt in block:
            kind = type(stmt)
            if kind is Comment:
                continue
            if kind is For or kind is If:
                if not self._nested(stmt, known):
                    return False
                continue
            found = _accesses(stmt)
            if found is None:
                return False
            self.accesses += found
            self.first |= traversal.reads(stmt) - known
            known.update(stmt.targets)
            self.assigned.update(stmt.targets)
        return True

    def _nested(self, stmt: Any, known: set[Var]) -> bool:
        """Add a loop or a branch, whose assignments may not run."""
        for part in stmt.headers:
            reads = elements_read(part)
            if reads is None:
                return False
            self.accesses += reads
            self.first |= traversal.free_vars(part) - known
        self.assigned.update(stmt.targets)
        return all(self.block(inner, known | {*stmt.targets}) for inner in stmt.blocks)


def _accesses(stmt: Any) -> Sequence[Access] | None:
    """The elements that a statement accesses, stores first; None if it is no assignment of scalars and no check."""
    if stmt.touches is None:
        stmt.touches = _found_in(stmt)
    return None if stmt.touches is False else stmt.touches


def _found_in(stmt: Stmt) -> Sequence[Access] | Literal[False]:
    match stmt:
        case Assign((target,), value) if type(target.type) is Scalar:
            parts: tuple[Any, ...] = (value,)
            found: list[Access] = []
        case Store(array, index, value) if all(map(_is_number, (*index, value))):
            parts = (*index, value)
            found = [Access(array, index, True)]  # type: ignore[arg-type]
        case If(test, (Raise(_, message),), ()) if all(isinstance(part, Const) for part in message):
            parts, found = (test,), []
        case _:
            return False
    for part in parts:
        reads = elements_read(part)
        if reads is None:
            return False
        found += reads
    return found


def _is_number(item: object) -> bool:
    return type(getattr(item, "type", None)) is Scalar


def elements_read(expr: Expr) -> Sequence[Access] | None:
    """The elements an expression reads; None where it reads more than elements, or has effects."""
    if type(expr) is Const:
        return ()
    if all(type(var.type) is Scalar for var in traversal.free_vars(expr)):
        return None if Routine in map(type, traversal.callees(expr)) else ()
    found: list[Access] = []
    arrays = 0  # arrays that are used other than by their elements and sizes
    for part in traversal.subexpressions(expr):
        kind = type(part)
        if kind is Var:
            arrays += type(part.type) is not Scalar
        elif kind is Load and type(part.type) is Scalar:
            found.append(Access(part.array, part.index, False))
            arrays -= 1
        elif kind is Call and type(part.func) is not Routine:
            arrays -= _is_size(part)
        elif kind is not Const:
            return None
    return None if arrays else found


def _is_size(call: Call) -> bool:
    """Whether a call reads nothing of an array but its shape."""
    match call:
        case Call(intrinsics.dim, (Var(), Const())):
            return True
        case Call(np.size | builtins.len, (Var() as array,)):
            return isinstance(array.type, Array)
    return False


# ---- memory ----------------------------------------------------------------------------------------------------------


_JOINING_NOTHING = frozenset({Store, For, If, Return, Raise, Comment})


class AliasSets:
    """Which variables may share memory, anywhere in a function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._sets = DisjointSets[Var]()
        self.group = self._sets.find  # the representative of the alias set of a variable
        self._shared: set[Var] = set()
        self._effects: dict[Stmt, Effects] = {}
        self._made: dict[Var, list[Stmt]] = {}
        self.padded: set[Var] = set()  # arrays with a margin of zeros
        for first, *others in map(tuple, function.shared):
            for other in others:
                self._join(first, other)
        for stmt in traversal.statements(function.body):
            if type(stmt) is Assign:
                for target in stmt.targets:
                    if type(target.type) is not Scalar:
                        self._made.setdefault(target, []).append(stmt)
                        for source in sources(stmt.value):
                            self._join(target, source)
            elif type(stmt) not in _JOINING_NOTHING and not (is_call_by_chunks(stmt) or _keeps_number(stmt)):
                places = [var for part in stmt.headers for var in traversal.free_vars(part) if _is_place(var)]
                for other in places[1:]:
                    self._join(places[0], other)

    @cached_property
    def uses(self) -> Counter[Var]:
        """The number of uses of each array."""
        occurring = (var for stmt in self._function.body for var in traversal.occurring(stmt))
        return Counter([var for var in occurring if type(var.type) is not Scalar])

    def groups(self, names: Set[Var]) -> Iterable[Var]:
        """The representatives of several variables."""
        return names if self._sets.joined.isdisjoint(names) else map(self.group, names)

    def own(self, var: Var) -> Stmt | None:
        """The single statement that creates an array, if no other variable shares its memory."""
        made = self._made.get(var, [])
        return made[0] if len(made) == 1 and var not in self._shared else None

    def effects(self, stmt: Stmt) -> Effects:
        """Variables that a statement reads, variables it assigns, alias sets it stores into, alias sets it accesses."""
        found = self._effects.get(stmt)
        if found is None:
            reads, assigns = traversal.reads(stmt), traversal.assigns(stmt)
            inside = traversal.statements((stmt,))
            if len(inside) > 1:
                own = {loop.target for loop in _loops((stmt,))} - self._counting
                reads, assigns = reads - own, assigns - own
            writes = frozenset([self.group(var) for inner in inside for var in _stored(inner)])
            found = reads, assigns, writes, writes.union([self.group(var) for var in reads if _is_place(var)])
            self._effects[stmt] = found
        return found

    @cached_property
    def lasting(self) -> set[Var]:
        """Counters that are read outside their loops."""
        return read_after_loops(self._function.body)

    @cached_property
    def _counting(self) -> set[Var]:
        """Counters whose values matter outside of their loops."""
        found = set(self.lasting)
        for loop in traversal.statements(self._function.body):
            if isinstance(loop, For) and loop.target in [each.target for each in _loops(loop.body)]:
                found.add(loop.target)  # assigned again inside the loop
        return found

    def _join(self, a: Var, b: Var) -> None:
        a, b = self.group(a), self.group(b)
        if a != b:
            self._sets.join(a, b)
            self._shared |= {a, b}


@traversal.once
def alias_sets(function: Function) -> AliasSets:
    """The alias sets of a function; a pass that changes what they hold makes its own."""
    return AliasSets(function)


def _loops(block: Block) -> list[For]:
    return [stmt for stmt in traversal.statements(block) if type(stmt) is For]


def is_call_by_chunks(stmt: Stmt) -> bool:
    """Whether a statement runs a parallel loop."""
    return type(stmt) is Effect and type(stmt.call.func) is Routine and stmt.call.func.by_chunks


def _stored(stmt: Stmt) -> Sequence[Var]:
    """The arrays into which a statement itself stores."""
    if isinstance(stmt, Store):
        return (stmt.array,)
    match stmt:
        case Effect(Call(Routine(by_chunks=True, function=Function() as function), args)):
            pass
        case _:
            return ()
    stored = {inner.array for inner in traversal.statements(function.body) if isinstance(inner, Store)}
    return [
        arg for param, arg in zip(function.params[1:], args, strict=True) if param in stored and isinstance(arg, Var)
    ]


def _keeps_number(stmt: Stmt) -> bool:
    """Whether a statement puts a number into a list: what it is computed from shares no memory with the list."""
    match stmt:
        case Effect(Call(intrinsics.append | intrinsics.set_item, (_, *rest))):
            return all(type(part.type) is Scalar for part in rest)
    return False


def _is_place(var: Var) -> bool:
    return isinstance(var.type, (Array, ListOf))


# ---- order -----------------------------------------------------------------------------------------------------------


def may_share_loops(first: LoopNest, second: LoopNest, memory: AliasSets) -> bool:
    """Whether two loop nests of the same loops may be fused: iterations with equal counters run together.

    Elements that both access, and one of them writes, must be accessed in the same iteration only.
    """
    if first.assigned & second.first_read or second.assigned & first.first_read:
        return False
    counters = set(first.counters)
    varying = counters | first.assigned | second.assigned
    pairs = [(a, b) for a in first.accesses for b in second.accesses if a.writes or b.writes]
    renamed = dict(zip(second.counters, first.counters, strict=True))
    for a, b in pairs:
        if memory.group(a.array) != memory.group(b.array):
            continue
        if a.array != b.array:
            return False
        index = tuple(traversal.substitute(item, renamed) for item in b.index)
        if not (same_iteration(a.index, index, counters, varying) or _never_meet(a.index, index, varying)):
            return False
    return True


def same_iteration(a: tuple[Expr, ...], b: tuple[Expr, ...], counters: set[Var], varying: set[Var]) -> bool:
    """Whether two accesses refer to the same element for equal counters only."""
    if any(traversal.loads(item) for item in (*a, *b)):
        return False
    found: set[Var] = set()
    for x, y in zip(a, b, strict=True):
        form = linear(x)
        if form != linear(y):
            continue
        moving = [c for c in counters if c in traversal.free_vars(x)]
        if len(moving) == 1 and form.coefficient(moving[0]):
            rest = form.without(moving[0])
            if not any(traversal.free_vars(atom) & varying for atom in rest.atoms):
                found.add(moving[0])
    return found == counters


def _never_meet(a: tuple[Expr, ...], b: tuple[Expr, ...], varying: set[Var]) -> bool:
    """Whether the indices of two accesses differ on some axis for all iterations."""
    for x, y in zip(a, b, strict=True):
        gap = linear(x) - linear(y)
        fixed = not (traversal.free_vars(x) | traversal.free_vars(y)) & varying
        if fixed and gap.is_constant and gap.constant and not traversal.loads(x) and not traversal.loads(y):
            return True
    return False


def independent(a: Stmt, b: Stmt, memory: AliasSets) -> bool:
    """Whether two statements may be swapped."""
    reads_a, defs_a, writes_a, touches_a = memory.effects(a)
    reads_b, defs_b, writes_b, touches_b = memory.effects(b)
    if not (defs_a.isdisjoint(reads_b) and defs_a.isdisjoint(defs_b) and defs_b.isdisjoint(reads_a)):
        return False
    return writes_a.isdisjoint(touches_b) and writes_b.isdisjoint(touches_a)
