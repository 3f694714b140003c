"""Independence of the iterations of an innermost loop, except for sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from tapegen.ir import traversal
from tapegen.ir.affine import linear
from tapegen.ir.nodes import Const, Expr, For, Var
from tapegen.loops.analysis.dependence import LoopNest
from tapegen.loops.analysis.trip_counts import largest_trip_count

_FEW = 8
"""Trip count that is not worth a second loop: two vectors."""


def is_independent(
    nest: LoopNest, sums: Set[Var], group: Callable[[Var], Var], values: Mapping[Var, Expr] | None = None
) -> bool:
    """Whether iterations pass on nothing but sums, and the range of the loop is invariant.

    Parameters
    ----------
    nest : LoopNest
        A single loop.
    sums : set of Var
        Scalars that are carried from iteration to iteration.
    group : callable
        The representative of the alias set of an array.
    values : mapping, optional
        Integers of an iteration as functions of the counter.
    """
    (loop,) = nest.loops
    if loop.step != Const(1) or nest.first_read & nest.assigned != sums:
        return False
    if traversal.loads(loop.stop) or traversal.free_vars(loop.stop) & {loop.target, *nest.assigned}:
        return False
    written = {group(access.array): access for access in nest.accesses if access.writes}
    for access in nest.accesses:
        other = written.get(group(access.array))
        if other is not None and (access.array, access.index) != (other.array, other.index):
            return False
    varying = nest.assigned | {loop.target}
    places = [[traversal.substitute(item, values or {}) for item in access.index] for access in written.values()]
    moving = all(any(stride(item, loop.target, varying) for item in place) for place in places)
    return moving and all(not traversal.loads(item) for place in places for item in place)


def accesses_columns(nest: LoopNest, values: Mapping[Var, Expr]) -> bool:
    """Whether a single loop runs along another axis than the last one: LLVM takes no vectors where it does.

    Parameters
    ----------
    nest : LoopNest
        A single loop.
    values : mapping
        Integers of an iteration as functions of the counter.
    """
    (counter,) = nest.counters
    varying = nest.assigned | {counter}
    items = (item for access in nest.accesses for item in access.index[:-1])
    return any(stride(traversal.substitute(item, values), counter, varying) for item in items)


def is_short(loop: For) -> bool:
    """Whether a loop has so few iterations that a second loop does not pay."""
    return largest_trip_count(loop) <= _FEW


def stride(item: Expr, counter: Var, varying: Set[Var]) -> int:
    """The stride of an index from iteration to iteration, or 0 where it is not constant."""
    form = linear(item)
    fixed = form.without(counter).names.isdisjoint(varying)
    return form.coefficient(counter) if fixed else 0
