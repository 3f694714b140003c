"""Alias analysis: stores that another live variable may see, where their relation is not known statically.

The reverse sweep follows views: the cotangent of a view is the same view of the cotangent.  It cannot follow two
variables that alias only in some runs: `b = a if c else z`, then `b[0] = 1.0`, then `a` is read.

The analysis is flow-sensitive: for each program point, a set of pairs of variables that may share memory.  A swap of
two buffers permutes the pairs, so double buffering makes no conflict.
"""

from __future__ import annotations

import itertools
import linecache
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tapegen.analysis.liveness import Liveness
from tapegen.analysis.memory_access import Move, content_reads, is_place, list_stores, moves, sources, written
from tapegen.errors import AliasError, Span
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Continue,
    Effect,
    For,
    Function,
    If,
    Raise,
    Return,
    Routine,
    Stmt,
    Var,
    While,
)
from tapegen.ir.types import Array, ListOf


@dataclass(frozen=True, slots=True)
class Conflict:
    """`statement` writes through `stored`; `other` may share that memory and is read afterwards."""

    statement: Stmt
    stored: Var
    other: Var


def refusal_of(conflict: Conflict) -> AliasError:
    """The error that refuses a conflict; it mentions only variables that the user wrote."""
    origin, stored = conflict.statement.origin, conflict.stored.name
    written = {stored} if origin is None else set(re.findall(r"\w+", origin.text()))
    names = [name for name in (stored, re.sub(r"_\d+$", "", stored)) if name in written]
    what, copy = (f"'{names[0]}'", f"{names[0]} = {names[0]}.copy()") if names else ("what is written here", "x.copy()")
    return AliasError(
        f"{what} and {_as_written(conflict.other, origin)} may share memory here, the first is written and the second "
        "is read afterwards.",
        f"Copy one of them first ({copy}).",
        origin,
    )


def _as_written(var: Var, origin: Span | None) -> str:
    """The user's name of an array: in the IR, a second definition of `x` is `x_1`."""
    text = "" if origin is None else "".join(linecache.getlines(origin.file))
    for name in (var.name, re.sub(r"_\d+$", "", var.name)):
        if not text or re.search(rf"\b{re.escape(name)}\b", text):
            return f"'{name}'"
    return "another array"


Pairs = dict[frozenset[Var], bool]  # two variables that may alias -> whether their relation is known statically


def conflicts_of(function: Function, *, of_routines: bool = False) -> tuple[Conflict, ...]:
    """Find the alias conflicts of a lowered function, in textual order.

    With `of_routines`, results of routines alias arguments as they do in the user's program.
    """
    walk = _Walk(_assignments(function), of_routines)
    walk.block(function.body, {})
    if not walk.found:
        return ()
    live = Liveness(content_reads)
    live.before(function.body)
    return tuple(Conflict(stmt, stored, other) for stmt, stored, other in walk.found if other in live.after[stmt])


def pairs_at(function: Function) -> dict[Stmt, Pairs]:
    """The pairs that may alias before each statement of a program with nested expressions.

    Parameters of `function.shared` may alias; whether a relation is known statically is not found.
    """
    given = (frozenset(pair) for group in function.shared for pair in itertools.combinations(group, 2))
    walk = _Nested(_assignments(function), False)
    walk.block(function.body, dict.fromkeys(given, False))
    return walk.at


def _assignments(function: Function) -> Counter[Var]:
    assigned = [var for stmt in traversal.statements(function.body) if type(stmt) is Assign for var in stmt.targets]
    return Counter((*function.params, *assigned))


@dataclass(slots=True)
class _Walk:
    """Propagates the pairs forward and collects the stores through one variable of an unknown pair."""

    assigned: Counter[Var]
    of_routines: bool
    found: dict[tuple[Stmt, Var, Var], None] = field(default_factory=dict)
    at: dict[Stmt, Pairs] = field(default_factory=dict)
    at_break: list[list[Pairs]] = field(default_factory=list)
    at_continue: list[list[Pairs]] = field(default_factory=list)

    def block(self, block: Block, pairs: Pairs) -> Pairs | None:
        """The pairs after a block; None where its end is not reached."""
        for stmt in block:
            self.at[stmt] = pairs
            for name in written(stmt):
                for pair, known in pairs.items():
                    if not known and name in pair:
                        (other,) = pair - {name}
                        # list operations do not change the arrays in the list
                        if isinstance(name.type, Array) or isinstance(other.type, ListOf):
                            self.found[stmt, name, other] = None
            for sequence, item in self._stored_items(stmt):
                pairs = self._with_item(sequence, item, pairs)
            match stmt:
                case Assign():
                    pairs = self._assign(stmt, pairs)
                case If(_, body, orelse):
                    ends = [end for end in (self.block(body, pairs), self.block(orelse, pairs)) if end is not None]
                    if not ends:
                        return None
                    pairs = _join(ends)
                case For() | While():
                    pairs = self._loop(stmt.body, pairs)
                case Break():
                    self.at_break[-1].append(pairs)
                    return None
                case Continue():
                    self.at_continue[-1].append(pairs)
                    return None
                case Raise() | Return():
                    return None
        return pairs

    def _loop(self, body: Block, pairs: Pairs) -> Pairs:
        start = pairs
        while True:
            self.at_break.append([])
            self.at_continue.append([])
            end = self.block(body, start)
            again = [start, *self.at_continue.pop(), *([] if end is None else [end])]
            breaks = self.at_break.pop()
            joined = _join(again)
            if joined == start:
                return _join([start, *breaks])
            start = joined

    def _stored_items(self, stmt: Stmt) -> list[tuple[Var, Var]]:
        return list_stores(stmt)

    def _moves(self, stmt: Assign) -> list[tuple[Var, Move]]:
        if self.of_routines and isinstance(stmt.value, Call) and isinstance(stmt.value.func, Routine):
            return list(_in_the_users_program(stmt.targets, stmt.value, stmt.value.func))
        return moves(stmt)

    @staticmethod
    def _with_item(sequence: Var, item: Var, pairs: Pairs) -> Pairs:
        result = dict(pairs)
        lists = [sequence, *(var for pair in pairs if sequence in pair for var in pair)]
        arrays = [item, *(var for pair in pairs if item in pair for var in pair)]
        for a in lists:
            for b in arrays:
                if a != b:
                    _add(result, a, b, False)
        return result

    def _assign(self, stmt: Assign, pairs: Pairs) -> Pairs:
        made = self._moves(stmt)
        if not made:
            return pairs
        targets = {target for target, _ in made}
        result = {pair: known for pair, known in pairs.items() if pair.isdisjoint(targets)}
        for target, _ in made:  # a view of the old value of a rebound variable: no known relation any more
            if self.assigned[target] > 1:
                partners = {other for pair in pairs if target in pair for other in pair}
                result.update({pair: False for pair in result if pair <= partners})
        reaches: dict[Var, dict[Var, bool]] = {}  # target -> old variables that it may alias
        for target, move in made:
            known = move.exact and self.assigned[target] == 1 and not move.items and not move.fresh
            reach = reaches.setdefault(target, {})
            for source in move.sources:
                reach[source] = known and reach.get(source, True)
                for pair, pair_known in pairs.items():
                    if source in pair and len(pair) == 2:
                        (other,) = pair - {source}
                        reach[other] = known and pair_known and reach.get(other, True)
        sources = {target: set(move.sources) for target, move in made}
        for target, reach in reaches.items():
            for other, known in reach.items():
                if other not in targets:
                    _add(result, target, other, known)
            for second, theirs in reaches.items():
                # sharing is not transitive: two halves of one array do not share
                if second != target and (
                    not reach.keys().isdisjoint(sources[second]) or not theirs.keys().isdisjoint(sources[target])
                ):
                    _add(result, target, second, all(reach.values()) and all(theirs.values()))
        return result


class _Nested(_Walk):
    """The same for statements whose values are expression trees."""

    def _stored_items(self, stmt: Stmt) -> list[tuple[Var, Var]]:
        match stmt:
            case Effect(Call(intrinsics.append | intrinsics.set_item, (Var() as sequence, *_, item))):
                return [(sequence, source) for source in sources(item) if source != sequence]
        return []

    def _moves(self, stmt: Assign) -> list[tuple[Var, Move]]:
        return [(target, Move(tuple(sources(value)))) for target, value in traversal.pairs(stmt) if is_place(target)]


def _in_the_users_program(targets: tuple[Var, ...], call: Call, routine: Routine) -> Iterator[tuple[Var, Move]]:
    """The arguments that the results of a routine alias in the user's program (the routine returns copies)."""
    for target, shared in zip(targets, routine.shares, strict=True):
        if isinstance(target.type, Array):
            sources = tuple(arg for k in sorted(shared) if isinstance(arg := call.args[k], Var))
            yield target, Move(sources, fresh=True)


def _add(pairs: Pairs, a: Var, b: Var, known: bool) -> None:
    pair = frozenset((a, b))
    pairs[pair] = known and pairs.get(pair, True)


def _join(states: Iterable[Pairs]) -> Pairs:
    result: Pairs = {}
    for state in states:
        for pair, known in state.items():
            result[pair] = known and result.get(pair, True)
    return result
