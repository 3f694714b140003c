"""Copy propagation, coalescing, nesting of single-use temporaries, sharing between branches: one round over a sweep."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import replace

from tapegen.analysis.activity import is_view
from tapegen.analysis.memory_access import written
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Comment,
    Const,
    Continue,
    Effect,
    For,
    If,
    Load,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
    primal_origin,
)
from tapegen.ir.types import Array, ListOf, Scalar
from tapegen.transform.simplify.dead_code import Aliases, is_pure

NEST_LIMIT = 16
"""Maximal number of nodes of an expression that a temporary is nested into."""

STATEMENT_LIMIT = 300
"""The same where both come from one statement of the user, whose original form should be restored."""

_VERSION = re.compile(r"_\d+$")


class CopyPropagation:
    """One round of copy propagation, nesting and coalescing of variables over a sweep."""

    def __init__(self, block: Block, live_out: Set[Var], user_names: Set[str], aliases: Aliases) -> None:
        self.block = block
        self.live_out = live_out
        self.user_names = user_names
        self.aliases = aliases
        self.reads = Counter([var for stmt in block for var in traversal.occurring(stmt)])
        self.assigns = Counter([var for stmt in traversal.statements(block) for var in stmt.targets])

    def run(self) -> Block:
        return self._block(self.block)

    def is_temporary(self, var: Var) -> bool:
        return var.name not in self.user_names and _VERSION.sub("", var.name) not in self.user_names

    def _block(self, block: Block) -> Block:
        stmts = list(block)
        changed = False
        for k, stmt in enumerate(stmts):
            inner = stmt.blocks
            if inner:
                new = tuple(self._block(part) for part in inner)
                if any(a is not b for a, b in zip(new, inner, strict=True)):
                    stmts[k] = traversal.with_blocks(stmt, new)
                    changed = True
        k = 0
        while k < len(stmts):
            stmt = stmts[k]
            if type(stmt) is Assign and len(stmt.targets) == 1:
                moved = type(stmt.value) is Var
                if moved and self._is_idle(stmts, k):
                    del stmts[k]
                    changed = True
                    continue
                done = (moved or type(stmt.value) is Const) and (self._start(stmts, k) or self._propagate(stmts, k))
                if done or self._inline(stmts, k) or (moved and self._merge(stmts, k)):
                    changed = True
                    k = max(k - 1, 0)
                    continue
            elif (isinstance(stmt, Assign) and isinstance(stmt.value, Tuple) and self._merge(stmts, k)) or (
                isinstance(stmt, If) and stmt.orelse and self._share(stmts, k)
            ):
                changed = True
                continue
            k += 1
        return tuple(stmts) if changed else block

    def _single(self, var: Var) -> bool:
        return self.assigns[var] == 1 and var not in self.live_out

    # y = x; x = y: the second is redundant

    def _is_idle(self, stmts: list[Stmt], k: int) -> bool:
        stmt = stmts[k]
        assert isinstance(stmt, Assign)
        assert isinstance(stmt.value, Var)
        for j in range(k - 1, -1, -1):
            here = stmts[j]
            if isinstance(here, Assign) and here.targets == (stmt.value,):
                return here.value == stmt.targets[0]
            changed = traversal.assigns(here)
            if stmt.value in changed or stmt.targets[0] in changed:
                return False
        return False

    # x = 0.0; x += y: start with y

    def _start(self, stmts: list[Stmt], k: int) -> bool:
        stmt = stmts[k]
        assert isinstance(stmt, Assign)
        (target,) = stmt.targets
        if not builders.is_const(stmt.value, 0.0) or not self.is_temporary(target):
            return False
        for j in range(k + 1, len(stmts)):
            here = stmts[j]
            if not self._mentions(here, target):
                continue
            match here:
                case Assign((into,), Call(operator.add, (first, added))) if into == target == first:
                    if added.type != target.type or target in traversal.free_vars(added):
                        return False
                    stmts[j] = replace(here, value=added)
                    del stmts[k]
                    return True
            return False
        return False

    # if c: ...; x += y
    # else: x += y: add before

    def _share(self, stmts: list[Stmt], k: int) -> bool:
        """Hoist a statement that begins both branches out of the If, where the rest permits it."""
        stmt = stmts[k]
        assert isinstance(stmt, If)
        tested = traversal.free_vars(stmt.test)
        escapes = any(isinstance(part[-1], (Break, Continue)) for part in stmt.blocks if part)
        for i, here in enumerate(stmt.body):
            if (
                not isinstance(here, Assign)
                or any(target in tested for target in here.targets)
                or not (all(map(self.is_temporary, here.targets)) or (escapes and _is_move(here)))
                or any(isinstance(target.type, (Array, ListOf)) for target in here.targets)
                or not self._is_first(stmt.body, i)
            ):
                continue
            for j, other in enumerate(stmt.orelse):
                same = isinstance(other, Assign) and (other.targets, other.value) == (here.targets, here.value)
                if same and self._is_first(stmt.orelse, j):
                    body, orelse = _without(stmt.body, i), _without(stmt.orelse, j)
                    stmts[k : k + 1] = [here, replace(stmt, body=body, orelse=orelse)]
                    return True
        return False

    def _is_first(self, block: Block, k: int) -> bool:
        """Whether statement `k` may be moved to the start of its block."""
        stmt = block[k]
        assert isinstance(stmt, Assign)
        if not is_pure(stmt.value):
            return False
        read = traversal.free_vars(stmt.value)
        places = {self.aliases.root(var) for var in read if isinstance(var.type, (Array, ListOf))}
        for before in block[:k]:
            if any(self._mentions(before, target) for target in stmt.targets):
                return False
            if not read.isdisjoint(traversal.assigns(before)):
                return False
            if self._writes(before, places):
                return False
        return True

    # x = y: read y instead

    def _propagate(self, stmts: list[Stmt], k: int) -> bool:
        stmt = stmts[k]
        assert isinstance(stmt, Assign)
        (target,) = stmt.targets
        value = stmt.value
        if not isinstance(value, (Var, Const)) or not self._single(target) or not self.is_temporary(target):
            return False
        if isinstance(value, Const) and isinstance(target.type, (Array, ListOf)):
            return False
        last = self._last_read(stmts, k, target)
        if last is None:
            return False
        if isinstance(value, Var) and self._assigned_after(stmts[k + 1 : last + 1], value, target) is None:
            return False
        for j in range(k + 1, last + 1):
            if target in traversal.reads(stmts[j]):
                (stmts[j],) = traversal.substitute_block((stmts[j],), {target: value})
        if isinstance(value, Var):
            self.reads[value] += self.reads[target] - 1
        del stmts[k]
        return True

    def _last_read(self, stmts: list[Stmt], k: int, target: Var) -> int | None:
        """The last statement of the block that reads `target`, when the block holds all its reads."""
        found, last = 0, None
        for j in range(k + 1, len(stmts)):
            here = self._count(stmts[j], target)
            if here:
                found, last = found + here, j
        return last if found == self.reads[target] else None

    @staticmethod
    def _count(stmt: Stmt, var: Var) -> int:
        return traversal.occurring(stmt).count(var) if var in traversal.reads(stmt) else 0

    # t = e; ... f(t): write e in the place of t

    def _inline(self, stmts: list[Stmt], k: int) -> bool:
        stmt = stmts[k]
        assert isinstance(stmt, Assign)
        (target,) = stmt.targets
        several = self.reads[target] != 1
        if several and not (isinstance(stmt.value, Load) and (isinstance(target.type, Scalar) or is_view(stmt.value))):
            return False
        if not self._single(target) or not self.is_temporary(target):
            return False
        if isinstance(stmt.value, Call) and (
            stmt.value.func is intrinsics.new_list or intrinsics.changes(stmt.value.func)
        ):
            return False
        if self.aliases.stored(target) and not isinstance(stmt.value, (Load, Var)) and not self._is_value(target):
            return False
        inputs = traversal.free_vars(stmt.value)
        arrays = {self.aliases.root(var) for var in inputs if isinstance(var.type, (Array, ListOf))}
        for j in range(k + 1, len(stmts)):
            here = stmts[j]
            if target in traversal.reads(here) and any(target in traversal.free_vars(x) for x in here.headers):
                if several and (
                    here.blocks
                    or self._count(here, target) != self.reads[target]
                    or primal_origin(here) != primal_origin(stmt)
                ):
                    return False
                return self._inline_into(stmts, k, j)
            if isinstance(here, Comment):
                continue
            if target in traversal.reads(here):
                return False
            if not inputs.isdisjoint(traversal.assigns(here)):
                return False
            if arrays and self._writes(here, arrays):
                return False
        return False

    def _writes(self, stmt: Stmt, places: Set[Var]) -> bool:
        """Whether a statement may write into memory: a store, a change of a list, an effect, `out=`."""
        return any(
            isinstance(inner, Effect) or any(self.aliases.root(var) in places for var in written(inner))
            for inner in traversal.statements((stmt,))
        )

    def _is_value(self, target: Var) -> bool:
        return not isinstance(target.type, (Array, ListOf))

    def _inline_into(self, stmts: list[Stmt], k: int, j: int) -> bool:
        source, sink = stmts[k], stmts[j]
        assert isinstance(source, Assign)
        (target,) = source.targets
        if isinstance(sink, While) or (isinstance(sink, Store) and sink.array == target):
            return False
        if isinstance(target.type, Scalar) and builders.is_guarded(source.value) and target not in sink.headers:
            return False  # a chain of guards is read line by line
        if not self._is_value(target) and any(
            isinstance(part, Load) and part.array == target
            for h in sink.headers
            for part in traversal.subexpressions(h)
        ):
            return False
        limit = STATEMENT_LIMIT
        origin = primal_origin(source)
        if not (origin is not None and origin == primal_origin(sink) and not isinstance(sink, Comment)):
            limit = NEST_LIMIT
        elif isinstance(sink, Assign) and self._in_backward(source):
            limit = 2 * NEST_LIMIT
        if sum([len(traversal.subexpressions(part)) for part in (*sink.headers, source.value)]) > limit:
            return False
        stmts[j] = traversal.map_headers(sink, lambda node: traversal.substitute(node, {target: source.value}))
        del stmts[k]
        return True

    @staticmethod
    def _in_backward(source: Assign) -> bool:
        return source.targets[0].name.endswith("_bar")

    # x_1 = e; ...; x = x_1: assign x at once

    def _merge(self, stmts: list[Stmt], k: int) -> bool:
        stmt = stmts[k]
        assert isinstance(stmt, Assign)
        values = stmt.value.items if isinstance(stmt.value, Tuple) and len(stmt.targets) > 1 else (stmt.value,)
        for position, (target, value) in enumerate(zip(stmt.targets, values, strict=True)):
            if not isinstance(value, Var) or value == target or value in self.live_out or value.type != target.type:
                continue
            others = [item for n, item in enumerate(values) if n != position]
            if value in others or any(target in traversal.free_vars(item) for item in others):
                continue
            if self.assigns[value] == 1:
                start = self._definition(stmts, k, value)
                mergeable = start is not None and self._mergeable(stmts, start, k, value, target)
            elif (start := self._join(stmts, k, value)) is not None:
                mergeable = self._joinable(stmts, start, k, value, target)
            else:
                start = self._guest(stmts, k, value, target)
                mergeable = start is not None
            if start is None or not mergeable:
                continue
            for j in range(start, k):
                if self._mentions(stmts[j], value):
                    (stmts[j],) = traversal.rename_block((stmts[j],), {value: target})
            rest = [(t, v) for n, (t, v) in enumerate(zip(stmt.targets, values, strict=True)) if n != position]
            for j in range(k + 1, len(stmts)):
                if value in traversal.reads(stmts[j]):
                    (stmts[j],) = traversal.substitute_block((stmts[j],), {value: target})
            if not rest:
                del stmts[k]
            else:
                targets, items = tuple(t for t, _ in rest), tuple(v for _, v in rest)
                stmts[k] = Assign(targets, items[0] if len(items) == 1 else Tuple(items), stmt.origin)
            self.reads[target] += self.reads.pop(value) - 1
            self.assigns[target] += self.assigns.pop(value) - 1
            match stmts[start]:
                case Assign((into,), start_value) if into == start_value:
                    self.reads[into] -= 1
                    self.assigns[into] -= 1
                    del stmts[start]
            return True
        return False

    def _definition(self, stmts: list[Stmt], k: int, value: Var) -> int | None:
        for j in range(k - 1, -1, -1):
            here = stmts[j]
            if isinstance(here, Assign) and value in here.targets:
                return j
        return None

    # if c: x_1 = e
    # else: x_1 = x
    # x = x_1: assign x in the branches

    def _join(self, stmts: list[Stmt], k: int, value: Var) -> int | None:
        """The If before `stmts[k]` whose branches make all assignments of `value`."""
        for j in range(k - 1, -1, -1):
            if value in traversal.assigns(stmts[j]):
                made = sum(inner.targets.count(value) for inner in traversal.statements((stmts[j],)))
                return j if isinstance(stmts[j], If) and made == self.assigns[value] else None
        return None

    def _joinable(self, stmts: list[Stmt], start: int, k: int, value: Var, target: Var) -> bool:
        if sum(self._count(stmt, value) for stmt in stmts[start:]) != self.reads[value]:
            return False
        lasts = target not in traversal.assigns(stmts[start])  # then `x_1 = x` may stand anywhere
        if self._assigned_after(stmts[start : start + 1], value, target, lasts) is None:
            return False
        between = any(self._mentions(stmt, target) for stmt in stmts[start + 1 : k])
        return not between and self._outlives(stmts, k, value, target)

    # x_1 = e
    # for ...: x_1 = f(x_1)
    # x = x_1: assign x in the loop

    def _guest(self, stmts: list[Stmt], k: int, value: Var, target: Var) -> int | None:
        """Where the live range of `value` that ends in `stmts[k]` starts, if nothing reads `target` meanwhile."""
        for j in range(k - 1, -1, -1):
            here = stmts[j]
            if isinstance(here, Assign) and here.targets == (value,):
                made = sum(inner.targets.count(value) for inner in traversal.statements(stmts[j + 1 : k]))
                read = sum(self._count(stmt, value) for stmt in stmts[j + 1 :])
                whole = made == self.assigns[value] - 1 and read == self.reads[value]
                whole &= not self._count(here, value)  # its previous value, as a parameter
                return j if whole and self._outlives(stmts, k, value, target) else None
            if self._mentions(here, target):
                return None
        return None

    def _assigned_after(
        self, block: Iterable[Stmt], value: Var, target: Var, lasts: bool = False, assigned: bool = False
    ) -> bool | None:
        """Whether a block may have assigned `value` at its end; None where `target` is read or assigned after that.

        Where `target` `lasts`, a `value` that is the same does not count.
        """
        for stmt in block:
            inner = stmt.blocks
            if lasts and isinstance(stmt, Assign) and stmt.targets == (value,) and stmt.value == target:
                continue
            if not inner or isinstance(stmt, (For, While)):
                here = value in traversal.assigns(stmt)
                again = assigned or (here and bool(inner))  # the next iteration comes after this one
                if (again and self._mentions(stmt, target)) or (here and target in stmt.targets):
                    return None
                assigned |= here
                continue
            if assigned and any(target in traversal.free_vars(header) for header in stmt.headers):
                return None
            ends = [self._assigned_after(part, value, target, lasts, assigned) for part in inner]
            if None in ends:
                return None
            assigned = any(ends)
        return assigned

    @staticmethod
    def _mentions(stmt: Stmt, var: Var) -> bool:
        return var in traversal.reads(stmt) or var in traversal.assigns(stmt)

    def _mergeable(self, stmts: list[Stmt], start: int, k: int, value: Var, target: Var) -> bool:
        # every read of the value lies in this block, after its definition
        found = sum(self._count(stmt, value) for stmt in stmts[start:])
        if found != self.reads[value] or self._count(stmts[start], value):  # also its previous value, as a parameter
            return False
        if len(stmts[start].targets) > 1 and target in stmts[start].targets:
            return False
        if any(self._mentions(stmt, target) for stmt in stmts[start + 1 : k]):
            return False
        return self._outlives(stmts, k, value, target)

    @staticmethod
    def _outlives(stmts: list[Stmt], k: int, value: Var, target: Var) -> bool:
        """Whether after a move nothing assigns the target while the old name is still read."""
        rest = stmts[k + 1 :]
        again = any(target in traversal.assigns(stmt) for stmt in rest)
        return not (again and any(value in traversal.reads(stmt) for stmt in rest))


def _is_move(stmt: Assign) -> bool:
    values = stmt.value.items if isinstance(stmt.value, Tuple) else (stmt.value,)
    return all(isinstance(value, Var) for value in values)


def _without(block: Block, k: int) -> Block:
    return block[:k] + block[k + 1 :]
