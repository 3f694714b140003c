"""Slicing (basic indexing): slice bounds clipped once, before the loops, and integers checked or proved."""

from __future__ import annotations

import builtins
import operator

from tapegen.ir import intrinsics
from tapegen.ir.affine import Affine, linear, minus, plus
from tapegen.ir.nodes import Call, Const, Expr
from tapegen.ir.types import BOOL, INT, Scalar
from tapegen.loops.analysis.symbolic_bounds import Extent, stable
from tapegen.loops.legalize.builder import LoopBuilder

OUT_OF_BOUNDS = "index is out of bounds"


def sliced(
    w: LoopBuilder, extent: Extent, lo: Expr | None, hi: Expr | None, step: Expr | None
) -> tuple[Expr, Expr, Extent]:
    """First index, step and size of a slice along an axis."""
    step = Const(1) if step is None else step
    stride = w.facts.form(step)
    forward = w.facts.nonnegative(stride - 1)
    if not forward and not w.facts.nonnegative(-stride - 1):
        raise w.unsupported("a slice whose step has an unknown sign")
    if forward:
        first = Const(0) if lo is None else _bound(w, extent, lo, below=True)
        last = extent.size if hi is None else _bound(w, extent, hi, below=False)
        count = minus(last, first)
    else:
        first = plus(extent.size, -1) if lo is None else _backward_bound(w, extent, lo, below=False)
        last = Const(-1) if hi is None else _backward_bound(w, extent, hi, below=True)
        count = minus(first, last)
    if step in (Const(1), Const(-1)):
        return first, step, w.extent(count)
    width = linear(step) if forward else -linear(step)
    size = Call(operator.floordiv, ((linear(count) + width - 1).expr, width.expr), (), INT)
    return first, step, w.extent(w.bind(size, "n"))


def _bound(w: LoopBuilder, extent: Extent, bound: Expr, below: bool) -> Expr:
    """A bound of a slice with a positive step, clipped on the side where that matters.

    A lower bound past the end, or an upper one before the start, gives a slice of negative size, which is an empty one.
    """
    form, size = w.facts.form(bound), extent.form
    if w.facts.nonnegative(form):
        if below or w.facts.nonnegative(size - form):
            return bound
        return w.bind(_call(builtins.min, bound, w.clamped(extent)), "hi")
    from_end = plus(bound, extent.size)
    if w.facts.nonnegative(-form - 1):
        if not below or w.facts.nonnegative(size + form):
            return from_end
        return w.bind(_call(builtins.max, from_end, Const(0)), "lo")
    bound = w.bind(bound)
    from_end = plus(bound, w.clamped(extent))
    negative = Call(operator.lt, (bound, Const(0)), (), BOOL)
    if below:
        lo = w.bind(_ifelse(negative, _call(builtins.max, from_end, Const(0)), bound), "lo")
        w.facts.assume(w.facts.form(lo))
        return lo
    hi = w.bind(_ifelse(negative, from_end, _call(builtins.min, bound, w.clamped(extent))), "hi")
    w.facts.assume(size - w.facts.form(hi))
    return hi


def _backward_bound(w: LoopBuilder, extent: Extent, bound: Expr, below: bool) -> Expr:
    """A bound of a slice with a negative step: at most `size - 1`, at least -1."""
    form, size = w.facts.form(bound), extent.form
    last = plus(extent.size, -1)
    if w.facts.nonnegative(form):
        if below or w.facts.nonnegative(size - 1 - form):
            return bound
        return w.bind(_call(builtins.min, bound, last), "hi")
    from_end = plus(bound, extent.size)
    if w.facts.nonnegative(-form - 1):
        if not below or w.facts.nonnegative(size + form + 1):
            return from_end
        return w.bind(_call(builtins.max, from_end, Const(-1)), "lo")
    bound = w.bind(bound)
    from_end = plus(bound, extent.size)
    negative = Call(operator.lt, (bound, Const(0)), (), BOOL)
    if below:
        return w.bind(_ifelse(negative, _call(builtins.max, from_end, Const(-1)), bound), "lo")
    return w.bind(_ifelse(negative, from_end, _call(builtins.min, bound, last)), "hi")


def _call(func: object, a: Expr, b: Expr) -> Call:
    return Call(func, (a, b), (), INT)  # type: ignore[arg-type]


def _ifelse(test: Expr, a: Expr, b: Expr) -> Call:
    return Call(intrinsics.ifelse, (test, a, b), (), INT)


def position(w: LoopBuilder, extent: Extent, index: Expr) -> Expr:
    """An integer index along an axis, counted from its start, checked where it is not proved."""
    form, size = w.facts.form(index), extent.form
    if isinstance(index.type, Scalar) and index.type.dtype.startswith("uint"):
        w.facts.assume(form)  # and numba would convert its sum with a size to a float
    if w.facts.nonnegative(form):
        _require(w, size - 1 - form)
        return index
    if w.facts.nonnegative(-form - 1):
        _require(w, size + form)
        return plus(index, extent.size)
    if _movable(w, index):
        _require(w, size - 1 - form)
        _require(w, size + form)
        if w.facts.nonnegative(form):
            return index
        return from_start(w, extent, index)
    return from_start(w, extent, checked(w, extent, index))


def from_start(w: LoopBuilder, extent: Extent, index: Expr) -> Expr:
    """An index within bounds that may be negative, counted from the start: numba may assume that none is negative."""
    index = w.bind(index)
    return w.bind(_ifelse(Call(operator.lt, (index, Const(0)), (), BOOL), plus(index, extent.size), index))


def _require(w: LoopBuilder, form: Affine) -> None:
    """Ensure that the distances of an index from its bounds are not negative."""
    if w.boundscheck:
        w.require(form, IndexError, OUT_OF_BOUNDS)
    else:
        w.facts.assume(form)


def checked(w: LoopBuilder, extent: Extent, index: Expr) -> Expr:
    """An integer after a check that it is an index along an axis, from the start or from the end."""
    index, size = w.bind(index), w.clamped(extent)
    if not w.boundscheck:
        return index
    low = Call(operator.lt, (index, Call(operator.neg, (size,), (), INT)), (), BOOL)
    high = Call(operator.ge, (index, size), (), BOOL)
    w.check(Call(intrinsics.or_, (low, high), (), BOOL), IndexError, OUT_OF_BOUNDS)
    return index


def _movable(w: LoopBuilder, index: Expr) -> bool:
    """Whether a check of this index can be expressed by loop bounds."""
    return bool(w.loops) and stable(w.facts.form(index))
