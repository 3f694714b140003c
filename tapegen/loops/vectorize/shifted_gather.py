"""Gathering of shifted additions: the additions of one loop to neighbouring elements become one addition to each.

The adjoint of a stencil that is written as a loop adds to several elements around that of the iteration, so that each
iteration waits for the stores of the one before.  Each element can gather its contributions instead, recomputed from
what the iterations read: a loop over the elements is vectorized.  Legal in a backward sweep, whose additions have no
prescribed order, where the contributions depend on nothing that other iterations write.  It pays where they are cheap.
`distribute_loops` shows a program before and after.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.affine import folded, is_int, linear, minus, plus
from tapegen.ir.dead_code import acts, remove_dead
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Call, Const, Expr, For, If, Load, Stmt, Store, Var
from tapegen.ir.types import BOOL, INT
from tapegen.loops.analysis.dependence import Access, LoopNest, in_loops, same_iteration
from tapegen.loops.analysis.independence import stride
from tapegen.loops.analysis.iteration_order import Conflicts, IterationOrderPass
from tapegen.loops.analysis.trip_counts import largest_trip_count
from tapegen.loops.vectorize.loop_reversal import reversed_loop

_SHORT = 16  # iterations that are too few for loops of their own
_WIDEST = 6  # the maximal distance of the elements that an iteration adds to
_EDGES = 24  # the number of additions at the ends of the loop that are written out
_DEAR = 50  # the weight of a division or an elementary function
_WAITING = 8  # the weight of an addition that the next iteration waits for
_CHEAP: frozenset[Any] = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.neg, operator.pos, builtins.abs, np.abs),
        *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.not_),
        *(intrinsics.ifelse, intrinsics.and_, intrinsics.or_, np.float32, np.float64, builtins.float),
    }
)


@dataclass(frozen=True, eq=False)
class _Addition:
    """`array[..., place, ...] += value`, where both are functions of the counter alone."""

    store: Store
    axis: int
    value: Expr

    @property
    def shift(self) -> int:
        """The constant in the index along the axis, which tells it from those of the same group."""
        return linear(self.store.index[self.axis]).constant  # type: ignore[arg-type]

    def of(self, counter: Var, iteration: Expr) -> Store:
        """What one iteration adds."""
        return _at(replace(self.store, value=self.value), counter, iteration)


class GatheringPass(IterationOrderPass):
    """A pass over innermost loops that turns additions to neighbouring elements into loops over the elements."""

    def gathered(self, nest: LoopNest) -> list[Stmt]:
        """Loops over the elements that several iterations add to, and what is left of the loop."""
        conflicts = self.conflicts(nest)

        def free(stores: list[Store]) -> list[Store]:
            return [
                each
                for each in disjoint_stores(nest, stores, conflicts)
                if conflicts.group(each.array) not in self.deciding
            ]

        found = _gathered(nest, free, self.memory.group, self.leaving, self.names)
        if found is None:
            return []
        loops, left = found
        if not left:
            return loops
        rest = nest.with_body(left)
        return [*loops, reversed_loop(rest.stmt) if self.order(rest) == "reversible" else rest.stmt]


def disjoint_stores(nest: LoopNest, leaving: list[Store], conflicts: Conflicts) -> list[Store]:
    """Those of some additions whose elements nothing else in the loop accesses."""
    accesses = {stmt: _accesses(nest, stmt) for stmt in nest.body}
    while True:
        others = [
            access
            for stmt in nest.body
            for access in accesses[stmt]
            if not (stmt in leaving and access is accesses[stmt][0])
        ]
        disjoint = [
            stmt for stmt in leaving if not any(conflicts.anywhere(accesses[stmt][0], other) for other in others)
        ]
        if disjoint == leaving:
            return leaving
        leaving = disjoint


def _accesses(nest: LoopNest, stmt: Stmt) -> tuple[Access, ...]:
    """The accesses of one statement; a store's target first."""
    own = in_loops(nest.loops, (stmt,))
    assert own is not None
    return own.accesses


def _gathered(
    nest: LoopNest,
    free: Callable[[list[Store]], list[Store]],
    group: Callable[[Var], Var],
    lasting: Set[Var],
    names: NameSupply,
) -> tuple[list[Stmt], tuple[Stmt, ...]] | None:
    """The additions of a loop as a loop over the elements, and what is left of its body; None where nothing changes.

    Parameters
    ----------
    nest : LoopNest
        A single loop of a backward sweep that raises no errors.
    free : callable
        Of some additions, those whose elements nothing else in the loop accesses.
    group : callable
        The representative of the alias set of an array.
    lasting : set of Var
        Variables that are read elsewhere.
    names : NameSupply
        The supply of fresh names.
    """
    (loop,) = nest.loops
    ends = (loop.start, loop.stop)
    if any(traversal.free_vars(end) & nest.assigned or traversal.loads(end) for end in ends):
        return None
    if largest_trip_count(loop) < _SHORT:
        return None
    moving = [
        stmt for stmt in nest.body if isinstance(stmt, Store) and stmt.accumulate and _axis(nest, stmt) is not None
    ]
    if len(moving) < 2:
        return None
    groups = _groups(_additions(nest, free(moving), group))
    if not groups or not _pays(nest, groups):
        return None
    counter = loop.target
    upward = loop.step == Const(1)
    low = loop.start if upward else plus(loop.stop, 1)
    size = minus(loop.stop, low) if upward else minus(plus(loop.start, 1), low)
    long = [stmt for each in groups for stmt in _over_elements(each, loop, low, size, Var(names.fresh("l"), INT))]
    short = replace(loop, body=tuple(each.of(counter, counter) for found in groups for each in found))
    enough = Call(operator.ge, (size, Const(max(_width(each) for each in groups))), (), BOOL)
    leaving = {each.store for found in groups for each in found}
    rest = tuple([stmt for stmt in nest.body if stmt not in leaving])
    left = remove_dead(rest, lasting, lambda stmt: isinstance(stmt, Assign))
    return [If(enough, tuple(long), (short,), loop.origin)], left if acts(left) else ()


def _axis(nest: LoopNest, store: Store) -> int | None:
    """The axis along which an addition moves by one with each iteration."""
    (loop,) = nest.loops
    varying = nest.assigned | {loop.target}
    if any(traversal.loads(item) for item in store.index):
        return None
    moving = [k for k, item in enumerate(store.index) if not varying.isdisjoint(traversal.free_vars(item))]
    if len(moving) != 1 or stride(store.index[moving[0]], loop.target, varying) != 1:  # type: ignore[arg-type]
        return None
    return moving[0]


def _additions(nest: LoopNest, stores: list[Store], group: Callable[[Var], Var]) -> list[_Addition]:
    """Additions of values that an iteration computes from what no other iteration writes."""
    adding = {group(store.array) for store in stores}
    fixed = _own_elements(nest, group) - adding  # arrays that keep their elements until the iteration stores them
    written = {group(access.array) for access in nest.accesses if access.writes}
    known: dict[Var, Expr] = {}
    found: list[_Addition] = []

    def as_function(value: Expr) -> Expr | None:
        read = {group(load.array) for load in traversal.loads(value)}
        if not read.isdisjoint(written - fixed):
            return None
        value = traversal.substitute(value, known)
        return value if nest.assigned.isdisjoint(traversal.free_vars(value)) else None

    for stmt in nest.body:
        if isinstance(stmt, Assign):
            (target,) = stmt.targets
            value = None if target in nest.changing else as_function(stmt.value)
            if value is not None:
                known[target] = value
        elif isinstance(stmt, Store):
            value = as_function(stmt.value) if stmt in stores else None
            if value is not None:
                axis = _axis(nest, stmt)
                assert axis is not None
                found.append(_Addition(stmt, axis, value))
            fixed -= {group(stmt.array)}
    return found


def _own_elements(nest: LoopNest, group: Callable[[Var], Var]) -> set[Var]:
    """Alias sets of arrays of which each iteration accesses one element, its own."""
    (loop,) = nest.loops
    found: dict[Var, set[tuple[Var, tuple[Expr, ...]]]] = {}
    for access in nest.accesses:
        found.setdefault(group(access.array), set()).add((access.array, access.index))
    varying = {loop.target, *nest.assigned}
    return {
        each
        for each, places in found.items()
        if len(places) == 1 and all(same_iteration(index, index, {loop.target}, varying) for _, index in places)
    }


def _groups(additions: list[_Addition]) -> list[list[_Addition]]:
    """Additions to neighbouring elements of one array, of which an iteration adds to several."""
    groups: dict[tuple[Any, ...], list[_Addition]] = {}
    for each in additions:
        index = list(each.store.index)
        form = linear(index.pop(each.axis))  # type: ignore[arg-type]
        groups.setdefault((each.store.array, each.axis, form - form.constant, *index), []).append(each)
    return [each for each in groups.values() if 0 < _width(each) <= _WIDEST]


def _width(additions: list[_Addition]) -> int:
    shifts = [each.shift for each in additions]
    return max(shifts) - min(shifts)


def _pays(nest: LoopNest, groups: list[list[_Addition]]) -> bool:
    """Whether recomputing the contributions is cheap beside what it saves."""
    additions = [each for found in groups for each in found]
    if sum(_width(found) * len(found) for found in groups) > _EDGES:
        return False
    once = sum(_weight(part) for stmt in nest.body for part in stmt.headers)
    return sum(_weight(each.value) for each in additions) <= once + _WAITING * len(additions)


def _weight(expr: Any) -> int:
    """What an expression costs; equal parts are computed once."""
    return sum(
        1 if isinstance(part, Load) or part.func in _CHEAP else _DEAR
        for part in set(traversal.subexpressions(expr))
        if isinstance(part, (Load, Call)) and not is_int(part)
    )


def _over_elements(additions: list[_Addition], loop: For, low: Expr, size: Expr, element: Var) -> list[Stmt]:
    """A loop over the elements that all of the additions reach, and those at both ends of the loop.

    The loop comes first, so that it can store into an array of zeros.
    """
    counter = loop.target
    shifts = [each.shift for each in additions]
    at = plus(plus(element, low), max(shifts))
    terms = [each.of(counter, plus(at, -shift)).value for each, shift in zip(additions, shifts, strict=True)]
    total = replace(additions[0].of(counter, plus(at, -shifts[0])), value=builders.add_all(terms))
    rest = plus(size, min(shifts) - max(shifts))
    out: list[Stmt] = [For(element, Const(0), rest, Const(1), (total,), loop.origin)]
    for each, shift in zip(additions, shifts, strict=True):
        first = [plus(low, k) for k in range(max(shifts) - shift)]
        last = [plus(plus(low, size), -1 - k) for k in reversed(range(shift - min(shifts)))]
        out += [each.of(counter, iteration) for iteration in (*first, *last)]
    return out


def _at(store: Store, counter: Var, iteration: Expr) -> Store:
    mapping: Mapping[Var, Expr] = {counter: iteration}

    def moved(part: Any) -> Any:
        return traversal.map_expr(traversal.substitute(part, mapping), _folded)

    return replace(store, index=tuple(map(moved, store.index)), value=moved(store.value))


def _folded(part: Any) -> Any:
    return folded(part) if isinstance(part, Call) else part
