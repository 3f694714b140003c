"""May-alias pairs: which variables may share memory where an array is stored into.

Variables are related in pairs, statement by statement: a swap of two buffers permutes the pairs, so double buffering
needs no copies.  Different parameters are assumed not to overlap unless the program states it; the caller checks that.
"""

from __future__ import annotations

import itertools

from tapegen.analysis.memory_access import sources
from tapegen.ir import intrinsics
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Continue,
    Effect,
    Expr,
    For,
    Function,
    If,
    Raise,
    Return,
    Stmt,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import Array, ListOf

Pairs = frozenset[frozenset[Var]]


class Sharing:
    """Pairs of variables that may share memory, at each Store."""

    def __init__(self, function: Function) -> None:
        self._at: dict[Stmt, Pairs] = {}
        self._breaks: list[list[Pairs]] = []
        self._continues: list[list[Pairs]] = []
        given = (frozenset(pair) for group in function.shared for pair in itertools.combinations(group, 2))
        self._block(function.body, frozenset(given))

    def may_share(self, stmt: Stmt | None, a: Var, b: Var) -> bool:
        """Whether two variables may denote overlapping memory when a statement runs."""
        return a == b or stmt not in self._at or frozenset((a, b)) in self._at[stmt]

    def _block(self, block: Block, pairs: Pairs) -> Pairs | None:
        """The pairs after a block; None where its end is not reached."""
        for stmt in block:
            if isinstance(stmt, Assign):
                self._at[stmt] = pairs
                if any(map(_is_place, stmt.targets)):
                    targets, value = stmt.targets, stmt.value
                    items = value.items if isinstance(value, Tuple) and len(targets) == len(value.items) else None
                    pairs = _assigned(pairs, targets, items or (value,) * len(targets))
                continue
            match stmt:
                case Effect(Call(intrinsics.append | intrinsics.set_item, (Var() as sequence, *_, item))):
                    pairs = pairs | {frozenset((sequence, source)) for source in sources(item) if source != sequence}
                case If(_, body, orelse):
                    ends = [end for end in (self._block(body, pairs), self._block(orelse, pairs)) if end is not None]
                    if not ends:
                        return None
                    pairs = frozenset().union(*ends)
                case For() | While():
                    pairs = self._loop(stmt.body, pairs)
                case Break():
                    self._breaks[-1].append(pairs)
                    return None
                case Continue():
                    self._continues[-1].append(pairs)
                    return None
                case Raise() | Return():
                    return None
                case _:
                    self._at[stmt] = pairs
        return pairs

    def _loop(self, body: Block, pairs: Pairs) -> Pairs:
        while True:
            self._breaks.append([])
            self._continues.append([])
            end = self._block(body, pairs)
            again = pairs.union(*self._continues.pop(), *([] if end is None else [end]))
            breaks = self._breaks.pop()
            if again == pairs:
                return pairs.union(*breaks)
            pairs = again


def _assigned(pairs: Pairs, targets: tuple[Var, ...], values: tuple[Expr, ...]) -> Pairs:
    places = {target: set(sources(value)) for target, value in zip(targets, values, strict=True) if _is_place(target)}
    result = {pair for pair in pairs if pair.isdisjoint(places)}
    reach: dict[Var, set[Var]] = {}
    for target, found in places.items():
        reach[target] = found | {other for pair in pairs if not pair.isdisjoint(found) for other in pair}
        result |= {frozenset((target, other)) for other in reach[target] if other not in places}
    names = list(reach)
    for k, target in enumerate(names):
        result |= {frozenset((target, other)) for other in names[k + 1 :] if not reach[target].isdisjoint(reach[other])}
    return frozenset(result)


def _is_place(var: Var) -> bool:
    return isinstance(var.type, (Array, ListOf))
