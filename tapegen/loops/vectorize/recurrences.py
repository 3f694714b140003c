"""Loops of derivatives whose trips wait for each other: less to wait for.

The derivative of a recurrence is a recurrence, and a processor has time for everything else while it waits for the
number that goes from trip to trip.  So that number, a cotangent or a tangent, is multiplied by one factor, which is
worked out beside it (`factored`).  In a backward sweep additions to elements that no trip waits for leave the loop for
loops of their own, whose trips are apart (`parted`).  Both round otherwise than the text, which no number may notice
that decides something (`deciding`): a primal value that is evaluated again must lead the way it led before.  Beside
tangents (`following`) values stay what they are.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import (
    Assign,
    Call,
    Const,
    Expr,
    For,
    If,
    Load,
    Stmt,
    Store,
    Var,
)
from tapegen.ir.types import BOOL, INT, Array, Scalar
from tapegen.loops.analysis.affine import folded, linear, minus, plus
from tapegen.loops.analysis.dependence import Access, Memory, Nest, in_loops

_LARGEST = 60  # nodes of a factor
_GAIN = 2  # operations less in a row that a factor is worth

# ---- one factor ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Multiple:
    """`factor * carried`, or `factor * carried + rest`.

    Attributes
    ----------
    factor : Expr
        Does not depend on the number that is carried from trip to trip.
    waits : int
        How many operations in a row stand between that number and this multiple of it.
    strong : bool
        Whether the product is zero where the number is, whatever the factor is.
    rest : Expr or None
        What is added to it.
    """

    factor: Expr
    waits: int
    strong: bool = False
    rest: Expr | None = None


def factored(nest: Nest, memory: Memory, numbers: Set[Var], names: NameSupply, *, sums: bool = False) -> Nest:
    """The nest with numbers that its trips hand on as products of two.

    Parameters
    ----------
    nest : Nest
        A single loop.
    memory : Memory
        Which names may share memory.
    numbers : set of Var
        Names whose value may change in its last place.
    names : NameSupply
        Where new names come from.
    sums : bool
        Whether something may be added to the product.
    """
    changing = _changing(nest)
    written = {memory.group(access.array) for access in nest.accesses if access.writes}
    for carried in sorted(nest.first_read & nest.assigned & numbers, key=lambda var: var.name):
        if not _is_float64(carried):
            continue
        found: dict[Var, _Multiple] = {carried: _Multiple(Const(1.0), 0)}
        varying = set() if sums else changing
        body: list[Stmt] = []
        for k, stmt in enumerate(nest.body):
            if not isinstance(stmt, Assign):
                body.append(stmt)
                continue
            (target,) = stmt.targets
            multiple = _multiple(stmt.value, found, varying, sums=sums)
            if target == carried:
                loads = () if multiple is None else traversal.loads(multiple.factor)
                if (
                    multiple is None
                    or not _pays(multiple)
                    or any(memory.group(load.array) in written for load in loads)
                ):
                    break
                nest = nest.with_body([*body, replace(stmt, value=_product(multiple, carried)), *nest.body[k + 1 :]])
                break
            if multiple is not None and target not in changing:
                if sums:
                    multiple = _held(multiple, target, changing, body, names)
                found[target] = multiple
            body.append(stmt)
    return nest


def _held(multiple: _Multiple, target: Var, changing: Set[Var], before: list[Stmt], names: NameSupply) -> _Multiple:
    """The same with names for what means something else later in the trip."""

    def name(part: Expr | None, what: str, *, lasts: bool) -> Expr | None:
        if part is None or isinstance(part, Const) or lasts:
            return part
        var = Var(names.fresh(f"{target.name}_{what}"), Scalar("float64", False))
        before.append(Assign((var,), part))
        return var

    fixed = not traversal.loads(multiple.factor) and changing.isdisjoint(traversal.free_vars(multiple.factor))
    factor = name(multiple.factor, "factor", lasts=fixed)
    assert factor is not None
    alone = isinstance(multiple.rest, Var) and multiple.rest not in changing
    return replace(multiple, factor=factor, rest=name(multiple.rest, "rest", lasts=alone))


def _changing(nest: Nest) -> set[Var]:
    """Numbers that do not have one value throughout a trip."""
    counts = Counter(var for stmt in nest.body for var in stmt.targets)
    return {var for var, count in counts.items() if count > 1 or var in nest.first_read}


def _is_float64(expr: Expr) -> bool:
    return isinstance(expr.type, Scalar) and expr.type.dtype == "float64"


def _pays(multiple: _Multiple) -> bool:
    """Whether one product takes less time, and its factor is a sum of products."""
    if multiple.waits < 1 + multiple.strong + (multiple.rest is not None) + _GAIN:
        return False
    parts = list(traversal.subexpressions(multiple.factor))
    cheap = all(part.func in _CHEAP for part in parts if isinstance(part, Call))
    return cheap and len(parts) <= _LARGEST


_CHEAP: frozenset[Any] = frozenset(
    {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.ne, intrinsics.ifelse}
)


def _product(multiple: _Multiple, carried: Var) -> Expr:
    product = builders.mul(multiple.factor, carried)
    product = _unless_zero(carried, product) if multiple.strong else product
    return product if multiple.rest is None else builders.add(product, multiple.rest)


def _unless_zero(number: Expr, value: Expr) -> Expr:
    if isinstance(number, Const):
        return value if number.value else Const(0.0)
    return Call(
        intrinsics.ifelse, (Call(operator.ne, (number, Const(0.0)), (), BOOL), value, Const(0.0)), (), value.type
    )


def _multiple(value: Expr, found: Mapping[Var, _Multiple], changing: Set[Var], *, sums: bool) -> _Multiple | None:
    """A value as a multiple of what is carried, if it is one and mentions nothing that changes within a trip."""
    if isinstance(value, Var):
        return found.get(value)
    if not isinstance(value, Call):
        return None
    match value.func, value.args:
        case operator.neg, (a,):
            inner = _multiple(a, found, changing, sums=sums)
            return None if inner is None else _scaled(inner, builders.neg)
        case ((operator.add | operator.sub), (a, b)):
            return _sum(value.func, a, b, found, changing, sums=sums)
        case operator.mul, (a, b):
            for one, other in ((a, b), (b, a)):
                inner = _multiple(one, found, changing, sums=sums)
                if inner is not None and _fixed(other, found, changing):
                    return _scaled(inner, functools.partial(builders.mul, other))
        case operator.truediv, (a, b):
            inner = _multiple(a, found, changing, sums=sums)
            if inner is not None and _fixed(b, found, changing):
                return _scaled(inner, lambda part: Call(operator.truediv, (part, b), (), value.type), _DIVISION)
        case intrinsics.ifelse, (Call(operator.ne, (number, Const(0.0))), a, Const(0.0)):
            test, inner = (_multiple(part, found, changing, sums=sums) for part in (number, a))
            if test is not None and inner is not None and test.rest is None and inner.rest is None:
                waits = max(test.waits, inner.waits) + 1
                return _Multiple(_unless_zero(test.factor, inner.factor), waits, strong=True)
    return None


def _scaled(multiple: _Multiple, scale: Callable[[Expr], Expr], waits: int = 1) -> _Multiple:
    rest = None if multiple.rest is None else scale(multiple.rest)
    return _Multiple(scale(multiple.factor), multiple.waits + waits, multiple.strong, rest)


def _sum(
    func: Any, a: Expr, b: Expr, found: Mapping[Var, _Multiple], changing: Set[Var], *, sums: bool
) -> _Multiple | None:
    """The sum or difference of two multiples, or of one and of what is none."""
    join = builders.add if func is operator.add else builders.sub
    left, right = (_multiple(part, found, changing, sums=sums) for part in (a, b))
    if left is not None and right is not None:
        waits = max(left.waits, right.waits) + 1
        rest = left.rest if right.rest is None else join(left.rest or Const(0.0), right.rest)
        return _Multiple(join(left.factor, right.factor), waits, left.strong or right.strong, rest)
    if not sums:
        return None
    if left is not None and _fixed(b, found, changing):
        return replace(left, waits=left.waits + 1, rest=join(left.rest or Const(0.0), b))
    if right is not None and _fixed(a, found, changing):
        rest = a if right.rest is None else join(a, right.rest)
        factor = right.factor if func is operator.add else builders.neg(right.factor)
        return replace(right, factor=factor, waits=right.waits + 1, rest=rest)
    return None


_DIVISION = 3  # a division takes as long as so many products


def _fixed(value: Expr, found: Mapping[Var, _Multiple], changing: Set[Var]) -> bool:
    """Whether a value does not depend on what is carried, and is the same where it is read later on a trip."""
    return not any(var in found or var in changing for var in traversal.free_vars(value))


# ---- loops apart -----------------------------------------------------------------------------------------------------

_FEW = 2  # numbers of each trip that are kept for the other loops
_SHORT = 16  # trips that take no longer than making room for such numbers


@dataclass(frozen=True)
class Meetings:
    """What is known of where the accesses of a loop meet.

    Attributes
    ----------
    elsewhere : callable
        Whether two accesses may meet on different trips.
    anywhere : callable
        Whether they may meet at all.
    group : callable
        A name that stands for all names which may share memory with an array.
    """

    elsewhere: Callable[[Access, Access], bool]
    anywhere: Callable[[Access, Access], bool]
    group: Callable[[Var], Var]


def parted(nest: Nest, meetings: Meetings, decide: set[Var], names: NameSupply) -> list[Stmt]:
    """A loop without the additions that no trip of it waits for, and a loop for each of them; nothing if it stays.

    Parameters
    ----------
    nest : Nest
        A single loop.
    meetings : Meetings
        Which of its accesses meet.
    decide : set of Var
        Groups of arrays whose elements must not change in their last place.
    names : NameSupply
        Where new names come from.
    """
    (loop,) = nest.loops
    ends = (loop.start, loop.stop)
    if any(traversal.free_vars(end) & nest.assigned or traversal.loads(end) for end in ends) or trips(loop) < _SHORT:
        return []  # the other loops must count as this one does; a short loop is not worth new arrays
    additions = _additions(nest, meetings)
    if len(additions) < 2:
        return []
    moving = [access for access in nest.accesses if _moves(access.index, nest)]
    if not any(meetings.elsewhere(a, b) for k, a in enumerate(moving) for b in moving[:k]):
        return []
    leaving = [stmt for stmt in _leaving(nest, additions, meetings) if meetings.group(stmt.array) not in decide]
    read = {var for stmt in leaving for var in traversal.free_vars(stmt.value) & nest.assigned}
    if len(leaving) < 2 or len(read) > _FEW or not all(map(_is_float64, read)) or read & _changing(nest):
        return []
    upward = loop.step == Const(1)
    low = loop.start if upward else plus(loop.stop, 1)
    size = minus(loop.stop, low) if upward else minus(plus(loop.start, 1), low)
    groups = _groups(leaving, loop.target, read)
    margin = max(group.width for group in groups)
    kept: dict[Var, Var] = {}
    out: list[Stmt] = []
    zeros: list[Stmt] = []
    for var in sorted(read, key=lambda var: var.name):
        row = kept[var] = Var(names.fresh(f"{var.name}_row"), Array("float64", 1, "C"))
        room = plus(Call(max, (size, Const(0)), (), INT), 2 * margin)
        out.append(Assign((row,), Call(np.empty, (room,), (), row.type), loop.origin))
        for k in range(margin):
            zeros += [Store(row, (place,), Const(0.0)) for place in (Const(k), plus(size, margin + k))]
    body: list[Stmt] = []
    for stmt in nest.body:
        if stmt not in leaving:
            body.append(stmt)
        if isinstance(stmt, Assign) and stmt.targets[0] in kept:
            place = plus(minus(loop.target, low), margin)
            body.append(Store(kept[stmt.targets[0]], (place,), stmt.targets[0]))
    out.append(replace(loop, body=tuple(body)))
    loops = [group.loop(Var(names.fresh("l"), INT), low, size, margin, kept) for group in groups]
    if not margin:
        return [*out, *loops]
    return [*out, If(Call(operator.gt, (size, Const(0)), (), BOOL), (*zeros, *loops), (), loop.origin)]


def trips(loop: For) -> float:
    """How many trips a loop takes, if that is a constant."""
    gap = linear(loop.stop) - linear(loop.start)
    return abs(gap.constant) if gap.is_constant else math.inf


@dataclass(frozen=True)
class _Group:
    """Additions of the same number of each trip to elements that lie side by side, in steps of the counter."""

    store: Store
    counter: Var
    axis: int
    shifts: tuple[int, ...]  # from the counter of the trip to the elements it adds to; one is 0

    @property
    def width(self) -> int:
        return max(self.shifts) - min(self.shifts)

    def loop(self, counter: Var, low: Expr, size: Expr, margin: int, kept: Mapping[Var, Var]) -> For:
        """A loop through the elements, each of which collects what it gets."""
        first = min(self.shifts)
        terms: list[Expr] = []
        for shift in self.shifts:
            there: dict[Var, Expr] = {self.counter: plus(counter, low)}
            place = plus(counter, margin - (shift - first))
            there |= {var: Load(row, (place,), var.type) for var, row in kept.items()}
            terms.append(traversal.substitute(self.store.value, there))
        at = {self.counter: plus(plus(counter, low), first)}
        index = tuple(folded(traversal.substitute(item, at)) for item in self.store.index)
        total = replace(self.store, index=index, value=builders.add_all(terms))
        return For(counter, Const(0), plus(size, self.width), Const(1), (total,), self.store.origin)


_WIDEST = 4  # how far apart elements may lie that collect from the same numbers


def _groups(leaving: list[Store], counter: Var, numbers: set[Var]) -> list[_Group]:
    groups: list[_Group] = []
    for stmt in leaving:
        forms = [linear(item) for item in stmt.index]  # type: ignore[arg-type]
        axis = next(k for k, form in enumerate(forms) if form.coefficient(counter))
        for k, group in enumerate(groups):
            first = linear(group.store.index[axis])  # type: ignore[arg-type]
            gap = forms[axis] - first
            others = (
                stmt.index[:axis] == group.store.index[:axis]
                and stmt.index[axis + 1 :] == group.store.index[axis + 1 :]
            )
            together = (stmt.array, stmt.value, axis) == (group.store.array, group.store.value, group.axis) and others
            if together and gap.is_constant and first.coefficient(counter) == 1 and _is_multiple(stmt.value, numbers):
                wider = replace(group, shifts=(*group.shifts, gap.constant))
                if wider.width <= _WIDEST:
                    groups[k] = wider
                    break
        else:
            groups.append(_Group(stmt, counter, axis, (0,)))
    return groups


def _is_multiple(value: Expr, numbers: set[Var]) -> bool:
    """Whether a value is one of the numbers, or a constant times one: zero where that is zero."""
    match value:
        case Var():
            return value in numbers
        case Call(operator.mul, (Const(float() as factor), Var() as number)):
            return bool(np.isfinite(factor)) and number in numbers
        case Call(operator.neg, (inner,)):
            return _is_multiple(inner, numbers)
    return False


def _additions(nest: Nest, meetings: Meetings) -> list[Store]:
    """Additions to another element on each trip, of what the loop does not write."""
    written = {meetings.group(access.array) for access in nest.accesses if access.writes}
    return [
        stmt
        for stmt in nest.body
        if isinstance(stmt, Store)
        and stmt.accumulate
        and stmt.array.type.dtype == "float64"  # type: ignore[union-attr]
        and _is_float64(stmt.value)
        and _moves(stmt.index, nest)
        and not any(meetings.group(load.array) in written for load in traversal.loads(stmt.value))
    ]


def _leaving(nest: Nest, leaving: list[Store], meetings: Meetings) -> list[Store]:
    """Those of some additions to elements that nothing else in the loop touches."""
    accesses = {stmt: _accesses(nest, stmt) for stmt in nest.body}
    while True:
        others = [
            access
            for stmt in nest.body
            for access in accesses[stmt]
            if not (stmt in leaving and access is accesses[stmt][0])
        ]
        apart = [stmt for stmt in leaving if not any(meetings.anywhere(accesses[stmt][0], other) for other in others)]
        if apart == leaving:
            return leaving
        leaving = apart


def _accesses(nest: Nest, stmt: Stmt) -> tuple[Access, ...]:
    """What one statement reads and writes; first what a store writes."""
    own = in_loops(nest.loops, (stmt,))
    assert own is not None
    return own.accesses


def _moves(index: tuple[Any, ...], nest: Nest) -> bool:
    """Whether an index is another one on each trip, in even steps."""
    (loop,) = nest.loops
    forms = [linear(item) for item in index]
    if any(traversal.free_vars(item) & nest.assigned or traversal.loads(item) for item in index):
        return False
    inside = [form for form in forms if any(loop.target in traversal.free_vars(atom) for atom in form.atoms)]
    return len(inside) == 1 and abs(inside[0].coefficient(loop.target)) == 1
