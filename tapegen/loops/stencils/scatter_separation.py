"""Distribution of the scattered additions of stencil adjoints, with array expansion: what several elements receive.

The adjoint of a stencil that is written in loops over elements adds one value to several neighbouring elements, so that
each iteration waits for the stores of the one before.  The value becomes an array, and each addition a loop nest of its
own, as if the stencil were written with slices: `scatter_to_gather` makes one gathering nest of them.  Legal in a
backward sweep, whose additions have no prescribed order, where the nest reads nothing that it adds to, and its
iterations are independent otherwise.

Before, in a backward sweep::

    def f(y_bar: "f8[:, :]", u_bar: "f8[:, :]", n: "i8"):
        for i in range(n - 2, 0, -1):
            for j in range(n - 2, 0, -1):
                g = y_bar[i, j]
                y_bar[i, j] = 0.0
                u_bar[i, j + 1] += g
                u_bar[i, j - 1] += g
        return u_bar

After::

    def f(y_bar, u_bar, n):
        g_all = np.empty((max(n - 2, 0), max(n - 2, 0)))
        for i in range(n - 2):
            for j in range(n - 2):
                g = y_bar[i + 1, j + 1]
                y_bar[i + 1, j + 1] = 0.0
                g_all[i, j] = g
        for i_1 in range(n - 2):
            for j_1 in range(n - 2):
                u_bar[i_1 + 1, j_1 + 2] += g_all[i_1, j_1]
        for i_2 in range(n - 2):
            for j_2 in range(n - 2):
                u_bar[i_2 + 1, j_2] += g_all[i_2, j_2]
        return u_bar
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tapegen.ir import builders, traversal
from tapegen.ir.affine import folded, linear, minus, plus
from tapegen.ir.nodes import Assign, Call, Const, Expr, For, Function, Load, Stmt, Store, Var, While
from tapegen.ir.types import INT, Array
from tapegen.loops.analysis.alias_pairs import Sharing
from tapegen.loops.analysis.dependence import LoopNest, in_loops
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.iteration_order import IterationOrderPass, sums_of
from tapegen.loops.analysis.trip_counts import largest_trip_count
from tapegen.loops.legalize.precision import dtype_of
from tapegen.loops.locality.packing_buffers import has_matrices

_SHORT = 8  # iterations that are too few for loops of their own
_MOST = 3  # arrays of values: each is written and read once more
_FLOATS = frozenset({"float64", "float32"})


def separate_scatters(function: Function) -> Function:
    """The same program with a loop nest for each of the shifted additions of a nest."""
    if not has_matrices(function):
        return function
    return traversal.with_body(function, _Separation(function).block(function.body))


@dataclass(frozen=True, eq=False)
class _Addition:
    """`target[counters + shift] += value`."""

    store: Store
    shift: tuple[int, ...]
    source: Expr

    @property
    def target(self) -> Var:
        return self.store.array


class _Separation(IterationOrderPass):
    @cached_property
    def sharing(self) -> Sharing:
        """Which arrays may overlap at each store: buffers that are swapped never do."""
        return Sharing(self.function)

    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        return [nest.stmt]

    def replaced(self, stmt: For | While, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loop, or the nests of its additions and of the rest of its body."""
        nest = _perfect(stmt) if self.backward else None
        moved = [] if nest is None else self._moved(nest)
        if nest is None or not moved or not self._is_legal(nest, moved):
            return [traversal.with_blocks(stmt, (self.block(stmt.body),))]
        return list(self._separated(nest, moved))

    # ---- which additions ---------------------------------------------------------------------------------------------

    def _moved(self, nest: LoopNest) -> list[_Addition]:
        """The additions that leave the nest: those of values that go to several elements."""
        additions = [each for stmt in nest.body if (each := _addition(nest, stmt)) is not None]
        found: list[_Addition] = []
        for target in dict.fromkeys(each.target for each in additions):
            own = [each for each in additions if each.target == target]
            if len({each.shift[-1] for each in own}) < 2:
                continue  # an inner loop that adds along a row is vectorized
            scattered = [each for each in own if len({x.shift for x in own if x.source == each.source}) > 1]
            rest = {each.shift for each in own if each not in scattered}
            if scattered and len(rest) > 1:  # they would still wait for each other
                nearest = min(rest, key=_distance)
                scattered = [each for each in own if each in scattered or each.shift != nearest]
            found += scattered
        return found if len({(each.target, each.source) for each in found}) <= _MOST else []

    def _is_legal(self, nest: LoopNest, moved: list[_Addition]) -> bool:
        """Whether only sums pass from iteration to iteration, and nothing reads what the nest adds to."""
        if nest.checks or not all(map(self.is_stepwise, nest.loops)):
            return False
        left = nest.assigned & (nest.first_read | self.leaving)
        if left - sums_of(nest) or left & self.deciding:
            return False
        targets = {each.target for each in moved}
        varying = {*nest.counters, *nest.assigned}
        for stmt in nest.body:
            if not isinstance(stmt, Store):
                continue
            for access in nest.accesses:
                if not self.sharing.may_share(stmt, stmt.array, access.array):
                    continue
                if access.array != stmt.array:
                    return False
                if stmt.array in targets:
                    if not access.writes or not stmt.accumulate:
                        return False
                elif access.index != stmt.index or not _is_own(stmt.index, nest, varying):
                    return False
        return self.deciding.isdisjoint(map(self.memory.group, targets))

    # ---- the new nests -----------------------------------------------------------------------------------------------

    def _separated(self, nest: LoopNest, moved: list[_Addition]) -> Iterator[Stmt]:
        sizes = [minus(end, low) for low, end in map(_ends, nest.loops)]
        shape = [Call(max, (size, Const(0)), (), INT) for size in sizes]
        arrays = {
            key: self._array(*key, len(sizes)) for key in dict.fromkeys((each.target, each.source) for each in moved)
        }
        for array in arrays.values():
            yield Assign((array,), builders.new_array(np.empty, shape, array.type), nest.loops[0].origin)
        keys = {each.store: (each.target, each.source) for each in moved}
        kept = dict(arrays)
        body: list[Stmt] = []
        for stmt in nest.body:
            if not isinstance(stmt, Store) or stmt not in keys:
                body.append(traversal.map_headers(stmt, lambda part: _from_zero(part, nest, nest.counters)))
            elif array_of := kept.pop(keys[stmt], None):
                value = _from_zero(keys[stmt][1], nest, nest.counters)
                body.append(Store(array_of, nest.counters, value, False, stmt.origin))
        yield _in_loops(nest, nest.counters, sizes, tuple(body))
        for each in moved:
            counters = tuple([Var(self.names.fresh(counter.name), INT) for counter in nest.counters])
            index = tuple([_from_zero(item, nest, counters) for item in each.store.index])
            element = Load(arrays[keys[each.store]], counters, each.source.type)
            value = _with_source(each.store.value, each.source, element)
            yield _in_loops(nest, counters, sizes, (replace(each.store, index=index, value=value),))

    def _array(self, target: Var, source: Expr, rank: int) -> Var:
        name = source.name if isinstance(source, Var) else target.name
        return Var(self.names.fresh(f"{name}_all"), Array(dtype_of(source), rank, "C"))


def _perfect(stmt: For | While) -> LoopNest | None:
    """A perfect nest of at least two loops over ranges that begin at constants and are known before it."""
    loops: list[For] = []
    body: tuple[Stmt, ...] = (stmt,)
    while len(body) == 1 and isinstance(body[0], For):
        loops.append(body[0])
        body = body[0].body
    nest = in_loops(tuple(loops), body) if len(loops) > 1 else None
    if nest is None or len({*nest.counters}) < len(loops):
        return None
    varying = {*nest.counters, *nest.assigned}
    for loop in loops:
        if loop.step not in (Const(1), Const(-1)) or largest_trip_count(loop) < _SHORT:
            return None
        if any(traversal.loads(end) or traversal.free_vars(end) & varying for end in (loop.start, loop.stop)):
            return None
        if not linear(_ends(loop)[0]).is_constant:
            return None
    return in_loops(_in_order_of_axes(nest), body)


def _in_order_of_axes(nest: LoopNest) -> tuple[For, ...]:
    """The loops of independent iterations, the innermost one along the last axis of what it adds to."""
    for stmt in nest.body:
        if isinstance(stmt, Store) and stmt.accumulate and len(stmt.index) == len(nest.loops):
            along = [[loop for loop in nest.loops if loop.target in traversal.free_vars(item)] for item in stmt.index]
            loops = tuple([loop for each in along for loop in each])
            if len(loops) == len({*loops}) == len(nest.loops):
                return loops
    return nest.loops


def _ends(loop: For) -> tuple[Expr, Expr]:
    """The first value of a counter, and the one after the last, in ascending order."""
    return (loop.start, loop.stop) if loop.step == Const(1) else (plus(loop.stop, 1), plus(loop.start, 1))


def _addition(nest: LoopNest, stmt: Stmt) -> _Addition | None:
    """A statement as an addition to an element at constant distances from the counters."""
    if not isinstance(stmt, Store) or not stmt.accumulate or len(stmt.index) != len(nest.loops):
        return None
    forms = [linear(item) for item in stmt.index]  # type: ignore[arg-type]
    shifts = [form - linear(counter) for form, counter in zip(forms, nest.counters, strict=True)]
    source = _source(stmt.value)
    dtype = stmt.array.type.dtype  # type: ignore[union-attr]
    if not all(shift.is_constant for shift in shifts) or dtype not in _FLOATS or dtype_of(stmt.value) != dtype:
        return None
    if dtype_of(source) != dtype or traversal.loads(source) or traversal.free_vars(source) & nest.changing:
        return None
    return _Addition(stmt, tuple(shift.constant for shift in shifts), source)


def _source(value: Expr) -> Expr:
    """What an expression is a multiple of, by a constant."""
    match value:
        case Call(operator.neg, (a,)) | Call(operator.mul, (Const(), a)) | Call(operator.mul, (a, Const())):
            return _source(a)
    return value


def _with_source(value: Expr, source: Expr, element: Expr) -> Expr:
    if value == source:
        return element
    assert isinstance(value, Call)
    args = tuple([arg if isinstance(arg, Const) else _with_source(arg, source, element) for arg in value.args])
    return replace(value, args=args)


def _is_own(index: tuple[Any, ...], nest: LoopNest, varying: set[Var]) -> bool:
    """Whether no other iteration has this element: each counter is in an index, alone."""
    alone = {
        counter
        for item in index
        for counter in nest.counters
        if linear(item).coefficient(counter) in (1, -1) and linear(item).without(counter).names.isdisjoint(varying)
    }
    return alone == {*nest.counters} and not any(traversal.loads(item) for item in index)


def _distance(shift: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return sum(map(abs, shift)), shift


def _from_zero(part: Any, nest: LoopNest, counters: tuple[Var, ...]) -> Any:
    """An expression of a nest, in loops that begin at zero."""
    lows = [_ends(loop)[0] for loop in nest.loops]
    values = {old: plus(new, low) for old, new, low in zip(nest.counters, counters, lows, strict=True)}
    return traversal.map_expr(traversal.substitute(part, values), folded)


def _in_loops(nest: LoopNest, counters: tuple[Var, ...], sizes: list[Expr], body: tuple[Stmt, ...]) -> Stmt:
    """Statements in loops that begin at zero."""
    for loop, counter, size in reversed(list(zip(nest.loops, counters, sizes, strict=True))):
        body = (For(counter, Const(0), size, Const(1), body, loop.origin),)
    return body[0]
