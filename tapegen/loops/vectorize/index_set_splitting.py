"""Index set splitting: the first and last iterations of an innermost loop are peeled where they decide tests otherwise.

Always legal: the iterations keep their order.  It pays where tests compare the counter with the ends of the loop, as
wrapped indices do (`x[i - 2]`, `x[(i + 1) % n]`) and `if i == 0`: the loop between has no tests and no selected
indices, so that it takes vector instructions, and additions to neighbouring elements can be gathered.

Before::

    def f(x: "f8[:]", y: "f8[:]", n: "i8"):
        for i in range(n):
            if i == 0:
                y[i] = x[i]
            else:
                y[i] = x[i] - x[i - 1]
        return y

After::

    def f(x, y, n):
        for i in range(min(1, n)):
            if i == 0:
                y[i] = x[i]
            else:
                y[i] = x[i] - x[i - 1]
        for i in range(1, n):
            y[i] = x[i] - x[i - 1]
        return y
"""

from __future__ import annotations

import builtins
import operator
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import replace
from typing import Any

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import Affine, folded, is_int, linear, plus
from tapegen.ir.nodes import Assign, Block, Call, Comment, Const, Expr, For, Function, If, Raise, Stmt, Var, While
from tapegen.ir.types import BOOL, INT
from tapegen.loops.analysis.block_queries import leaves
from tapegen.loops.analysis.dependence import LoopNest, in_loops
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.symbolic_bounds import SymbolicBounds
from tapegen.loops.analysis.trip_counts import largest_trip_count
from tapegen.loops.vectorize.shifted_gather import GatheringPass

_FEW = 6  # iterations at an end that are peeled
_SHORT = 16  # iterations that are too few for three loops
_LONG = 60  # statements of a body that is not copied
_MOST = 400  # statements that are copied in one function: they take time to compile


def split_index_sets(function: Function) -> Function:
    """The same program with loops that need no tests of their counters."""
    if not any(isinstance(stmt, For) and _compares(stmt) for stmt in traversal.statements(function.body)):
        return function
    return traversal.with_body(function, _Splitting(function).block(function.body))


def _compares(loop: For) -> bool:
    """Whether the body of a loop has tests or remainders."""
    called = traversal.calls(loop)
    return (
        operator.mod in called
        or intrinsics.ifelse in called
        or any(isinstance(stmt, If) and not _is_check(stmt) for stmt in traversal.statements(loop.body))
    )


def _is_check(stmt: If) -> bool:
    return bool(stmt.body) and isinstance(stmt.body[-1], Raise)


class _Splitting(GatheringPass):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.budget = _MOST

    def concerns(self, stmt: Stmt) -> bool:
        return any(isinstance(each, For) and _compares(each) for each in traversal.statements((stmt,)))

    def replaced(self, stmt: For | While, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loops in place of a loop."""
        if isinstance(stmt, For) and not any(
            isinstance(each, (For, While)) for each in traversal.statements(stmt.body)
        ):
            return self._split(stmt, outside) if self._may_split(stmt) else [stmt]
        return [traversal.with_blocks(stmt, (self.block(stmt.body),))]

    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        return [nest.stmt]  # `replaced` has split it

    def _may_split(self, loop: For) -> bool:
        assigned = traversal.assigned_in(*loop.body)
        ends = (loop.start, loop.stop)
        return (
            self.is_stepwise(loop)
            and loop.target not in assigned
            and not any(traversal.free_vars(end) & assigned or traversal.loads(end) for end in ends)
            and not leaves(loop.body)
            and all(_is_simple(stmt, loop) for stmt in traversal.statements(loop.body))
            and len(traversal.statements(loop.body)) <= _LONG
            and largest_trip_count(loop) >= _SHORT
        )

    def _split(self, loop: For, outside: FlowFacts) -> list[Stmt]:
        upward = loop.step == Const(1)
        low, high = (loop.start, loop.stop) if upward else (plus(loop.stop, 1), plus(loop.start, 1))
        first, last = self._peeled(loop, low, high)
        copied = len(traversal.statements(loop.body)) * (bool(first) + bool(last))
        if not copied or copied > self.budget:
            return [loop]
        self.budget -= copied
        begin, end = plus(low, first), plus(high, -last)

        def counting(start: Expr, stop: Expr, body: Block) -> For:
            ends = (start, stop) if upward else (plus(stop, -1), plus(start, -1))
            return replace(loop, start=ends[0], stop=ends[1], body=body)

        below = [counting(low, Call(builtins.min, (begin, high), (), INT), _copied(loop.body))] if first else []
        above = [counting(Call(builtins.max, (begin, end), (), INT), high, _copied(loop.body))] if last else []
        between = self._between(counting(begin, end, loop.body), outside)
        return [*below, *between, *above] if upward else [*above, *between, *below]

    def _between(self, loop: For, outside: FlowFacts) -> list[Stmt]:
        """The loop between the peeled iterations, without the tests that they decide."""
        outer, self.known = self.known, outside.body(loop)
        body = tuple(_decided(loop.body, outside.body(loop)))
        before, body = _with_plain_indices(body, loop.target, self.leaving)
        loop = replace(loop, body=body)
        nest = in_loops((loop,), loop.body)
        found: list[Stmt] = []
        if nest is not None and not nest.checks and self.order(nest) == "carried":
            found = self.gathered(nest)
        self.known = outer
        return [*before, *(found or [loop])]

    # ---- iterations at the ends --------------------------------------------------------------------------------------

    def _peeled(self, loop: For, low: Expr, high: Expr) -> tuple[int, int]:
        """How many iterations at both ends decide tests differently from those between."""
        start, stop = self.facts.form(low), self.facts.form(high)
        first = last = 0
        varying = {loop.target, *traversal.assigned_in(*loop.body)}
        for change in _changes(loop.body, loop.target, varying, FlowFacts(self.known)):
            after, before = change - start, stop - change
            if after.is_constant and 0 < after.constant <= _FEW:
                first = max(first, after.constant)
            elif before.is_constant and 0 < before.constant <= _FEW:
                last = max(last, before.constant)
        return first, last


def _is_simple(stmt: Stmt, loop: For) -> bool:
    """Whether a statement is a test, or assigns a scalar or an element."""
    return isinstance(stmt, (If, Raise)) or in_loops((loop,), (stmt,)) is not None


def _copied(block: Block) -> Block:
    """The same statements again, as objects of their own, without comments."""
    return tuple(
        [
            traversal.with_blocks(replace(stmt), tuple(map(_copied, stmt.blocks)))
            for stmt in block
            if not isinstance(stmt, Comment)
        ]
    )


# ---- where tests change ----------------------------------------------------------------------------------------------


def _changes(block: Block, counter: Var, varying: set[Var], known: FlowFacts) -> Iterator[Affine[Expr]]:
    """The values of a counter at which a test begins to have another outcome."""
    for stmt in block:
        for header in stmt.headers:
            for part in traversal.subexpressions(header) if _SELECTING & traversal.callees(header) else ():
                match part:
                    case Call(intrinsics.ifelse, (test, _, _)):
                        yield from _of_test(test, counter, varying, known.facts)
                    case Call(operator.mod, (number, size)) if is_int(number) and is_int(size):
                        for end in (Const(0), size):
                            reached = Call(operator.ge, (number, end), (), BOOL)
                            yield from _of_test(reached, counter, varying, known.facts)
        if isinstance(stmt, If) and not _is_check(stmt):
            yield from _of_test(stmt.test, counter, varying, known.facts)
            for side, inside in zip((stmt.body, stmt.orelse), known.sides(stmt), strict=True):
                yield from _changes(side, counter, varying, inside)
        known.learn(stmt)


def _of_test(test: Expr, counter: Var, varying: set[Var], facts: SymbolicBounds) -> Iterator[Affine[Expr]]:
    match test:
        case Call(intrinsics.and_ | intrinsics.or_ | operator.not_, parts):
            for part in parts:
                yield from _of_test(part, counter, varying, facts)
        case Call(func, (a, b)) if func in _ORDERS and is_int(a) and is_int(b):
            gap = facts.form(a) - facts.form(b)
            sign, rest = gap.coefficient(counter), gap.without(counter)
            if abs(sign) == 1 and rest.names.isdisjoint(varying):
                equal = rest * -sign
                at, beyond = (func in _AT) == (sign > 0), (func in _AT) != (sign > 0)
                if at or func in _EQUAL:
                    yield equal
                if beyond or func in _EQUAL:
                    yield equal + 1


_SELECTING: frozenset[Any] = frozenset({intrinsics.ifelse, operator.mod})
_EQUAL = frozenset({operator.eq, operator.ne})
_AT = frozenset({operator.lt, operator.ge})  # of a rising number: another outcome from where both are equal
_ORDERS = _EQUAL | _AT | {operator.le, operator.gt}


# ---- the loop between ------------------------------------------------------------------------------------------------


def _decided(block: Block, known: FlowFacts) -> Iterator[Stmt]:
    """The statements of a block without the tests whose outcome is known."""

    def change(part: Any) -> Any:
        match part:
            case Call(intrinsics.ifelse, (test, a, b)):
                outcome = _outcome(test, known.facts)
                return part if outcome is None else a if outcome else b
            case Call(operator.mod, (number, size)) if is_int(number) and is_int(size):
                facts = known.facts
                form = facts.form(number)
                within = facts.nonnegative(form) and facts.nonnegative(facts.form(size) - 1 - form)
                return number if within else part
        return part

    for stmt in block:
        if any(_SELECTING & traversal.callees(header) for header in stmt.headers):
            stmt = traversal.map_headers(stmt, lambda part: traversal.map_expr(part, change))
        outcome = _outcome(stmt.test, known.facts) if isinstance(stmt, If) else None
        if isinstance(stmt, If) and outcome is not None:
            yield from _decided(stmt.body if outcome else stmt.orelse, known)
            continue
        if isinstance(stmt, If):
            sides = zip((stmt.body, stmt.orelse), known.sides(stmt), strict=True)
            stmt = traversal.with_blocks(stmt, tuple(tuple(_decided(side, inside)) for side, inside in sides))
        known.learn(stmt)
        yield stmt


def _outcome(test: Expr, facts: SymbolicBounds) -> bool | None:
    """Whether a test of integers holds, if that is known."""
    match test:
        case Call(operator.not_, (inner,)):
            outcome = _outcome(inner, facts)
            return None if outcome is None else not outcome
        case Call(intrinsics.and_ | intrinsics.or_, parts):
            deciding = test.func is intrinsics.or_
            outcomes = [_outcome(part, facts) for part in parts]
            if deciding in outcomes:
                return deciding
            return None if None in outcomes else not deciding
        case Call(func, (a, b)) if func in _ORDERS and is_int(a) and is_int(b):
            gap = facts.form(b) - facts.form(a)
            if func in _EQUAL:
                if facts.nonnegative(gap - 1) or facts.nonnegative(-gap - 1):
                    return func is operator.ne
                return func is operator.eq if facts.equal(gap, Affine()) else None
            if func in (operator.ge, operator.gt):
                gap = -gap
            strict = func in (operator.lt, operator.gt)
            if facts.nonnegative(gap - strict):
                return True
            return False if facts.nonnegative(-gap - (not strict)) else None
    return None


def _with_plain_indices(body: Block, counter: Var, lasting: Set[Var]) -> tuple[list[Stmt], Block]:
    """Integers that are the same in all iterations, and the body with sums in place of the variables that hold them."""
    often = Counter(var for stmt in traversal.statements(body) for var in stmt.targets)
    known: dict[Var, Expr] = {}
    read: set[Var] = set(lasting)
    fixed: list[Stmt] = []
    out: list[Stmt] = []
    for stmt in body:
        (stmt,) = traversal.substitute_block((stmt,), known)
        match stmt:
            case Assign((target,), value) if is_int(value) and often[target] == 1 and target not in read:
                used = traversal.free_vars(value)
                if all(isinstance(atom, Var) and not often[atom] for atom in linear(value).atoms):
                    known[target] = folded(value)
                    continue
                if counter not in used and not any(often[var] for var in used) and traversal.callees(value) <= _PURE:
                    fixed.append(stmt)
                    often[target] = 0
                    continue
        read |= traversal.reads(stmt)
        out.append(stmt)
    return fixed, tuple(out)


_PURE: frozenset[Any] = frozenset(
    {operator.add, operator.sub, operator.mul, intrinsics.ifelse, intrinsics.dim, *_ORDERS}
)
