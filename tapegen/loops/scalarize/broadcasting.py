"""Broadcasting: which sizes must agree, and which axes have size 1 only at run time."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence

from tapegen.ir import intrinsics
from tapegen.ir.affine import Affine, times
from tapegen.ir.nodes import Call, Const, Expr
from tapegen.ir.types import BOOL, INT
from tapegen.loops.analysis.symbolic_bounds import UNIT, Extent, Extents
from tapegen.loops.legalize.builder import ElementRule, Indices, LoopBuilder, negative

MISMATCH = "operands could not be broadcast together"
BROADCASTS = "an axis of size 1 is broadcast"
"""The message of the `NotImplementedError` where a size was assumed to be equal to another one, and is not."""

Selector = Callable[[Indices], Indices]
Factor = Expr | int
"""The factor of an index: 1, 0 where the axis has size 1, or a scalar that is known at run time only."""


def broadcast(w: LoopBuilder, shapes: Sequence[Extents]) -> tuple[Extents, list[Selector]]:
    """The common shape, and for each operand how an index into the result maps to one of its own."""
    rank = max((len(shape) for shape in shapes), default=0)
    columns = [
        [shape[k - rank + len(shape)] if k >= rank - len(shape) else UNIT for shape in shapes] for k in range(rank)
    ]
    common: list[Extent] = []
    factors: list[list[Factor]] = []
    for column in columns:
        extent, column_factors = _axis(w, column)
        common.append(extent)
        factors.append(column_factors)
    selectors = [
        _selector([factors[k][which] for k in range(rank - len(shape), rank)]) for which, shape in enumerate(shapes)
    ]
    return tuple(common), selectors


def _selector(factors: list[Factor]) -> Selector:
    def select(index: Indices) -> Indices:
        own = index[len(index) - len(factors) :]
        return tuple(scaled(i, factor) for i, factor in zip(own, factors, strict=True))

    return select


def scaled(index: Expr, factor: Factor) -> Expr:
    if factor == 1:
        return index
    return Const(0) if factor == 0 else times(index, factor)  # type: ignore[arg-type]


def _axis(w: LoopBuilder, column: list[Extent]) -> tuple[Extent, list[Factor]]:
    sizes = [extent for extent in column if not extent.is_unit]
    if not sizes:
        return UNIT, [0] * len(column)
    different: list[Extent] = []
    for extent in sizes:
        if not any(w.facts.equal(extent.form, other.form) for other in different):
            different.append(extent)
    if len(different) == 1:
        return different[0], [0 if extent.is_unit else 1 for extent in column]
    whole = next((extent for extent in different if w.facts.is_never_one(extent.form)), None)
    if whole is None:
        whole = different[0] if w.speculative else _unknown_whole(w, different)
    factors: dict[Extent, Factor] = {}
    for extent in different:
        factors[extent] = _agree(w, extent, whole)
    result: list[Factor] = []
    for extent in column:
        if extent.is_unit:
            result.append(0)
        else:
            result.append(next(f for e, f in factors.items() if w.facts.equal(extent.form, e.form)))
    return whole, result


def _unknown_whole(w: LoopBuilder, different: list[Extent]) -> Extent:
    """The size of an axis where every operand may have size 1."""
    forms = tuple(extent.form for extent in different)
    known: Extent | None = w.facts.broadcasts.get(("whole", forms))
    if known is not None:
        return known
    size = w.clamped(different[0])
    for other in different[1:]:
        size = w.bind(size, "n")
        unit = Call(operator.eq, (size, Const(1)), (), BOOL)
        size = Call(intrinsics.ifelse, (unit, w.clamped(other), size), (), INT)
    whole = w.extent(w.bind(size, "n"))
    w.facts.assume(whole.form)
    w.facts.remember("whole", forms, whole)
    return whole


def _agree(w: LoopBuilder, extent: Extent, whole: Extent) -> Factor:
    """Check that an operand broadcasts along an axis; return how its index follows from that of the result."""
    if extent is whole or w.facts.equal(extent.form, whole.form):
        return 1
    if same_part(w, extent, whole):
        return 1
    size, full = w.clamped(extent), w.clamped(whole)
    differs = Call(operator.ne, (size, full), (), BOOL)
    if w.facts.is_never_one(extent.form) or _is_whole_or_never_one(w, extent, whole):
        w.check(differs, ValueError, MISMATCH)
        if w.facts.nonnegative(extent.form) and w.facts.nonnegative(whole.form):
            w.facts.assume_equal(extent.form, whole.form)
        return 1
    if assumed_equal(w, extent, whole):
        return 1
    if ("fits", (extent.form, whole.form)) not in w.facts.broadcasts:
        several = Call(operator.ne, (size, Const(1)), (), BOOL)
        w.check(Call(intrinsics.and_, (differs, several), (), BOOL), ValueError, MISMATCH)
        w.facts.remember("fits", (extent.form, whole.form), True)
    if w.facts.nonnegative(extent.form - whole.form):
        return 1  # where it has size 1, the result has no index but 0
    return unless_one(w, extent)


def assumed_equal(w: LoopBuilder, extent: Extent, whole: Extent) -> bool:
    """Whether two sizes that are rarely different may be assumed to be equal: other code runs where they are not."""
    if w.speculative:
        if not w.facts.nonnegative(extent.form) and not w.facts.nonnegative(whole.form):
            w.check(negative(whole.form), NotImplementedError, BROADCASTS)
            w.facts.assume(whole.form)
        w.check(Call(operator.ne, (extent.size, whole.size), (), BOOL), NotImplementedError, BROADCASTS)
        w.facts.assume_equal(extent.form, whole.form)
    return w.speculative


def _is_whole_or_never_one(w: LoopBuilder, extent: Extent, whole: Extent) -> bool:
    """Whether a clipped size (`a[:n]`) equals the one it is compared with, or that of an axis that is never 1."""
    match extent.form.atoms:
        case (Call(builtins.min, args) as clipped,) if extent.form == Affine.atom(clipped):
            forms = [w.facts.form(arg) for arg in args]
            return all(w.facts.equal(form, whole.form) or w.facts.is_never_one(form) for form in forms)
    return False


def unless_one(w: LoopBuilder, extent: Extent) -> Expr:
    """0 if a size is 1, else 1."""
    known: Expr | None = w.facts.broadcasts.get(("factor", (extent.form,)))
    if known is None:
        several = Call(operator.ne, (w.clamped(extent), Const(1)), (), BOOL)
        known = w.bind(Call(intrinsics.ifelse, (several, Const(1), Const(0)), (), INT), "m")
        w.facts.remember("factor", (extent.form,), known)
    return known


def same_part(w: LoopBuilder, a: Extent, b: Extent) -> bool:
    """Whether two sizes are the same function (`n - 2`) of two axis lengths, which are then required to be equal.

    That refuses a part that happens to have size 1 where the other one is longer: the only broadcast of NumPy
    that is an error here.
    """
    gap = a.form - b.form
    if gap.constant or sorted(c for _, c in gap.terms) != [-1, 1]:
        return False
    one, other = gap.atoms
    if not (w.facts.is_never_one(Affine.atom(one)) and w.facts.is_never_one(Affine.atom(other))):
        return False
    w.check(Call(operator.ne, (one, other), (), BOOL), ValueError, MISMATCH)
    w.facts.assume_equal(Affine.atom(one), Affine.atom(other))
    return True


def fit(w: LoopBuilder, value: ElementRule, target: Extents) -> ElementRule:
    """A value in the shape of its target: it is broadcast, the target never is; leading axes of size 1 are dropped."""
    extents = value.extents
    lead = len(extents) - len(target)
    for extent in extents[: max(lead, 0)]:
        if not extent.is_unit:
            several = Call(operator.ne, (extent.size, Const(1)), (), BOOL)
            w.check(several, ValueError, "could not broadcast the value into the shape of the target")
    aligned = extents[max(lead, 0) :]
    factors: list[Factor] = []
    for extent, whole in zip(aligned, target[len(target) - len(aligned) :], strict=True):
        factors.append(0 if extent.is_unit else _agree(w, extent, whole))
    select = _selector(factors)
    zeros: Indices = (Const(0),) * max(lead, 0)
    return ElementRule(target, value.dtype, lambda index: value.at(zeros + select(index)), value.weak, value.cost)
