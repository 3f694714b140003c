"""Loop distribution: additions outside of the loop-carried dependences move out of a loop that has such dependences.

In a backward sweep, additions to elements that nothing else in the loop accesses get loops of their own, which are
vectorized; the few scalars that they add are expanded to rows.  Legal where neither control flow nor indices depend on
their arrays, since rounding changes.  It pays where the stores and loads of these additions are on the critical path of
successive iterations.

Before, in a backward sweep::

    def f(k: "f8[:]", x_bar: "f8[:]", s_bar: "f8", n: "i8"):
        for i in range(n, 0, -1):
            t_bar = s_bar * k[i]
            x_bar[i] += t_bar
            x_bar[i - 1] += -t_bar
            s_bar = t_bar * 0.5
        return s_bar

After::

    def f(k, x_bar, s_bar, n):
        t_bar_row = np.empty(max(n, 0))
        for i in range(n, 0, -1):
            t_bar = s_bar * k[i]
            t_bar_row[i - 1] = t_bar
            s_bar = t_bar * 0.5
        for l in range(n):
            x_bar[l + 1] += t_bar_row[l]
        for l_1 in range(n):
            x_bar[l_1] -= t_bar_row[l_1]
        return s_bar

Additions to neighbouring elements, of which no iteration waits for another one, are gathered (`shifted_gather`).

Before, in a backward sweep::

    def f(k: "f8[:]", x_bar: "f8[:]", s: "f8", n: "i8"):
        for i in range(n, 0, -1):
            t_bar = s * k[i]
            x_bar[i] += t_bar
            x_bar[i - 1] += -t_bar
        return x_bar

After::

    def f(k, x_bar, s, n):
        if n >= 1:
            for l in range(n - 1):
                x_bar[l + 1] += s * k[l + 1] - s * k[l + 2]
            x_bar[n] += s * k[n]
            x_bar[0] -= s * k[1]
        else:
            for i in range(n, 0, -1):
                x_bar[i] += s * k[i]
                x_bar[i - 1] -= s * k[i]
        return x_bar
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapegen.ir import builders, traversal
from tapegen.ir.affine import folded, is_float64, linear, minus, plus
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Call,
    Const,
    Expr,
    For,
    Function,
    If,
    Load,
    Stmt,
    Store,
    Var,
)
from tapegen.ir.types import BOOL, INT, Array
from tapegen.loops.analysis.block_queries import has_backward_sweep
from tapegen.loops.analysis.dependence import LoopNest
from tapegen.loops.analysis.flow_facts import FlowFacts
from tapegen.loops.analysis.iteration_order import Conflicts
from tapegen.loops.analysis.trip_counts import largest_trip_count
from tapegen.loops.vectorize.shifted_gather import GatheringPass, disjoint_stores

_FEW = 3  # scalars of each iteration that are expanded for the other loops


_SHORT = 16  # iterations that take no longer than allocating rows for such scalars


def distribute_loops(function: Function) -> Function:
    """The same program with separate loops for additions outside of the loop-carried dependences."""
    if not has_backward_sweep(function):
        return function
    return traversal.with_body(function, _Distribution(function).block(function.body))


class _Distribution(GatheringPass):
    def rewrite(self, nest: LoopNest, before: list[Stmt], outside: FlowFacts) -> list[Stmt]:
        """The loop, and the loops that are split off."""
        if nest.checks or sum(isinstance(stmt, Store) and stmt.accumulate for stmt in nest.body) < 2:
            return [nest.stmt]
        if self.order(nest) != "carried":
            return [nest.stmt]
        return self.gathered(nest) or self.parted(nest) or [nest.stmt]

    def parted(self, nest: LoopNest) -> list[Stmt]:
        """The loop, and loops for what leaves it with rows of scalars."""
        additions = _additions(nest, self.memory.group)
        if len(additions) < 2:
            return []
        return _parted(nest, additions, self.conflicts(nest), self.deciding, self.names)


def _parted(
    nest: LoopNest, additions: list[Store], conflicts: Conflicts, decide: set[Var], names: NameSupply
) -> list[Stmt]:
    """A loop without additions outside of its dependences, and a loop for each of them; empty if nothing changes.

    Parameters
    ----------
    nest : LoopNest
        A single loop.
    additions : list of Store
        Additions to a different element in each iteration.
    conflicts : Conflicts
        Which of its accesses may refer to the same element.
    decide : set of Var
        Alias sets of arrays whose elements must not change in the last bit.
    names : NameSupply
        The supply of fresh names.
    """
    (loop,) = nest.loops
    ends = (loop.start, loop.stop)
    if (
        any(traversal.free_vars(end) & nest.assigned or traversal.loads(end) for end in ends)
        or largest_trip_count(loop) < _SHORT
    ):
        return []  # the other loops must have the same counter; a short loop is not worth new arrays
    moving = [access for access in nest.accesses if _moves(access.index, nest)]
    if not any(conflicts.elsewhere(a, b) for k, a in enumerate(moving) for b in moving[:k]):
        return []
    leaving = [
        stmt for stmt in disjoint_stores(nest, additions, conflicts) if conflicts.group(stmt.array) not in decide
    ]
    read = {var for stmt in leaving for var in traversal.free_vars(stmt.value) & nest.assigned}
    if len(leaving) < 2 or len(read) > _FEW or not all(map(is_float64, read)) or read & nest.changing:
        return []
    upward = loop.step == Const(1)
    low = loop.start if upward else plus(loop.stop, 1)
    size = minus(loop.stop, low) if upward else minus(plus(loop.start, 1), low)
    groups = _groups(leaving, loop.target, read)
    margin = max(group.width for group in groups)
    expanded: dict[Var, Var] = {}
    out: list[Stmt] = []
    zeros: list[Stmt] = []
    for var in sorted(read, key=lambda var: var.name):
        row = expanded[var] = Var(names.fresh(f"{var.name}_row"), Array("float64", 1, "C"))
        length = plus(Call(max, (size, Const(0)), (), INT), 2 * margin)
        out.append(Assign((row,), Call(np.empty, (length,), (), row.type), loop.origin))
        for k in range(margin):
            zeros += [Store(row, (place,), Const(0.0)) for place in (Const(k), plus(size, margin + k))]
    body: list[Stmt] = []
    for stmt in nest.body:
        if stmt not in leaving:
            body.append(stmt)
        if isinstance(stmt, Assign) and stmt.targets[0] in expanded:
            place = plus(minus(loop.target, low), margin)
            body.append(Store(expanded[stmt.targets[0]], (place,), stmt.targets[0]))
    out.append(replace(loop, body=tuple(body)))
    loops = [group.loop(Var(names.fresh("l"), INT), low, size, margin, expanded) for group in groups]
    if not margin:
        return [*out, *loops]
    return [*out, If(Call(operator.gt, (size, Const(0)), (), BOOL), (*zeros, *loops), (), loop.origin)]


@dataclass(frozen=True)
class _Group:
    """Additions of the same scalar of each iteration to adjacent elements, in steps of the counter."""

    store: Store
    counter: Var
    axis: int
    shifts: tuple[int, ...]  # offsets from the counter of the iteration to the elements it adds to; one is 0

    @property
    def width(self) -> int:
        return max(self.shifts) - min(self.shifts)

    def loop(self, counter: Var, low: Expr, size: Expr, margin: int, expanded: Mapping[Var, Var]) -> For:
        """A loop over the elements, each of which gathers its contributions."""
        first = min(self.shifts)
        terms: list[Expr] = []
        for shift in self.shifts:
            there: dict[Var, Expr] = {self.counter: plus(counter, low)}
            place = plus(counter, margin - (shift - first))
            there |= {var: Load(row, (place,), var.type) for var, row in expanded.items()}
            terms.append(traversal.substitute(self.store.value, there))
        at = {self.counter: plus(plus(counter, low), first)}
        index = tuple(folded(traversal.substitute(item, at)) for item in self.store.index)
        total = replace(self.store, index=index, value=builders.add_all(terms))
        return For(counter, Const(0), plus(size, self.width), Const(1), (total,), self.store.origin)


_WIDEST = 4  # the maximal distance of elements that gather from the same scalars


def _groups(leaving: list[Store], counter: Var, numbers: set[Var]) -> list[_Group]:
    groups: list[_Group] = []
    for stmt in leaving:
        forms = [linear(item) for item in stmt.index]  # type: ignore[arg-type]
        axis = next(k for k, form in enumerate(forms) if form.coefficient(counter))
        for k, group in enumerate(groups):
            if (stmt.array, stmt.value, axis) != (group.store.array, group.store.value, group.axis):
                continue
            first = linear(group.store.index[axis])  # type: ignore[arg-type]
            gap = forms[axis] - first
            together = (
                stmt.index[:axis] == group.store.index[:axis]
                and stmt.index[axis + 1 :] == group.store.index[axis + 1 :]
            )
            if together and gap.is_constant and first.coefficient(counter) == 1 and _is_multiple(stmt.value, numbers):
                wider = replace(group, shifts=(*group.shifts, gap.constant))
                if wider.width <= _WIDEST:
                    groups[k] = wider
                    break
        else:
            groups.append(_Group(stmt, counter, axis, (0,)))
    return groups


def _is_multiple(value: Expr, numbers: set[Var]) -> bool:
    """Whether a value is one of the scalars, or a constant multiple of one: zero where that is zero."""
    match value:
        case Var():
            return value in numbers
        case Call(operator.mul, (Const(float() as factor), Var() as number)):
            return bool(np.isfinite(factor)) and number in numbers
        case Call(operator.neg, (inner,)):
            return _is_multiple(inner, numbers)
    return False


def _additions(nest: LoopNest, group: Callable[[Var], Var]) -> list[Store]:
    """Additions to a different element in each iteration, of values that the loop does not write."""
    written = {group(access.array) for access in nest.accesses if access.writes}
    return [
        stmt
        for stmt in nest.body
        if isinstance(stmt, Store)
        and stmt.accumulate
        and stmt.array.type.dtype == "float64"  # type: ignore[union-attr]
        and is_float64(stmt.value)
        and _moves(stmt.index, nest)
        and not any(group(load.array) in written for load in traversal.loads(stmt.value))
    ]


def _moves(index: tuple[Any, ...], nest: LoopNest) -> bool:
    """Whether an index is different in each iteration, with a constant stride."""
    (loop,) = nest.loops
    forms = [linear(item) for item in index]
    if any(traversal.free_vars(item) & nest.assigned or traversal.loads(item) for item in index):
        return False
    inside = [form for form in forms if any(loop.target in traversal.free_vars(atom) for atom in form.atoms)]
    return len(inside) == 1 and abs(inside[0].coefficient(loop.target)) == 1
