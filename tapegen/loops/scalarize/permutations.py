"""Permutations and reshapes as index maps: rules for elements, without copies."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tapegen.ir import intrinsics
from tapegen.ir.affine import linear, minus, plus, times
from tapegen.ir.nodes import Call, Const, Expr, Slice, Tuple, Var
from tapegen.ir.types import BOOL, INT, Array, ListOf, Scalar, TupleOf
from tapegen.loops.analysis.symbolic_bounds import UNIT, Extent, Extents
from tapegen.loops.legalize import precision, scalar_ops
from tapegen.loops.legalize.builder import ElementRule, Indices, LoopBuilder
from tapegen.loops.legalize.registry import LAZY, SCALAR, arguments, handles
from tapegen.loops.scalarize.broadcasting import fit
from tapegen.loops.scalarize.expressions import lazy, loaded, once, scalar, stored_once

NEGATIVE = "negative dimensions are not allowed"


def static(w: LoopBuilder, expr: Any, what: str) -> Any:
    """The value of an argument that must be known at compile time."""
    match expr:
        case None:
            return None
        case Const(value):
            return value
        case Tuple(items):
            return tuple(static(w, item, what) for item in items)
        case Call(operator.neg, (inner,)):
            return -static(w, inner, what)
    raise w.unsupported(f"{what} that is not constant")


def axes_of(w: LoopBuilder, axis: Any, rank: int) -> tuple[int, ...]:
    """The axes an `axis=` argument denotes, counted from 0; None means all.  Scalars accept axis 0, which is none."""
    value = static(w, axis, "an axis")
    if value is None or rank == 0:
        return tuple(range(rank))
    return tuple(k % rank for k in (value if isinstance(value, (tuple, list)) else (value,)))


def shape_extents(w: LoopBuilder, expr: Expr) -> Extents:
    """The extents that a shape argument states."""

    def stated(size: Expr) -> Extent:
        return Extent(size, w.facts.form(size))  # as it is: a negative one is an error, where a slice would be empty

    match expr:
        case Tuple(items):
            return tuple(stated(scalar(w, item)) for item in items)
        case Const(tuple() as sizes):
            return tuple(stated(Const(size)) for size in sizes)
        case Call(intrinsics.shape | np.shape, (array,)):
            return lazy(w, array).extents
    if isinstance(expr.type, Scalar):
        return (stated(w.bind(scalar(w, expr))),)
    if isinstance(expr.type, TupleOf):
        shape = w.bind(scalar(w, expr))
        return tuple(
            stated(w.bind(Call(intrinsics.item, (shape, Const(k)), (), INT), "n")) for k in range(len(expr.type.items))
        )
    raise w.unsupported("a shape that is computed")


def new_extents(w: LoopBuilder, expr: Expr) -> Extents:
    """The extents that the shape of a new array states: none may be negative."""
    extents = shape_extents(w, expr)
    match expr:
        case Call(intrinsics.shape | np.shape):
            return extents  # those of an array: where a slice is empty, the form of its size may be negative
    for extent in extents:
        w.require(extent.form, ValueError, NEGATIVE)
    return extents


# ---- order of axes ---------------------------------------------------------------------------------------------------


def permuted(x: ElementRule, axes: tuple[int, ...]) -> ElementRule:
    """Axis k of the result is axis `axes[k]` of `x`."""
    back = [axes.index(k) for k in range(x.rank)]
    return ElementRule(
        tuple(x.extents[k] for k in axes), x.dtype, lambda index: x.at(tuple(index[k] for k in back)), x.weak
    )


@handles(LAZY, np.transpose, np.permute_dims, intrinsics.transpose_view)
def _transpose(w: LoopBuilder, call: Call) -> ElementRule:
    array, axes = arguments(w, call, "a", "axes")
    x = lazy(w, array)
    order = static(w, axes, "axes")
    return permuted(x, tuple(reversed(range(x.rank))) if order is None else tuple(k % x.rank for k in order))


@handles(LAZY, np.swapaxes)
def _swapaxes(w: LoopBuilder, call: Call) -> ElementRule:
    array, axis1, axis2 = arguments(w, call, "a", "axis1", "axis2")
    x = lazy(w, array)
    order = list(range(x.rank))
    a, b = static(w, axis1, "an axis"), static(w, axis2, "an axis")
    order[a], order[b] = order[b], order[a]
    return permuted(x, tuple(order))


@handles(LAZY, np.matrix_transpose, np.linalg.matrix_transpose)
def _matrix_transpose(w: LoopBuilder, call: Call) -> ElementRule:
    x = lazy(w, call.args[0])
    order = list(range(x.rank))
    return permuted(x, (*order[:-2], order[-1], order[-2]))


@handles(LAZY, np.moveaxis)
def _moveaxis(w: LoopBuilder, call: Call) -> ElementRule:
    array, source, destination = arguments(w, call, "a", "source", "destination")
    x = lazy(w, array)
    moved = dict(zip(axes_of(w, destination, x.rank), axes_of(w, source, x.rank), strict=True))
    rest = (k for k in range(x.rank) if k not in moved.values())
    return permuted(x, tuple(moved[k] if k in moved else next(rest) for k in range(x.rank)))


@handles(LAZY, np.rollaxis)
def _rollaxis(w: LoopBuilder, call: Call) -> ElementRule:
    array, axis, start = arguments(w, call, "a", "axis", "start")
    x = lazy(w, array)
    which, to = static(w, axis, "an axis") % x.rank, static(w, start, "an axis") or 0
    to = to + x.rank if to < 0 else to
    order = [k for k in range(x.rank) if k != which]
    order.insert(to - 1 if which < to else to, which)
    return permuted(x, tuple(order))


# ---- axes of size 1 --------------------------------------------------------------------------------------------------


def with_unit_axes(x: ElementRule, where: tuple[int, ...]) -> ElementRule:
    """New axes of size 1 at these positions of the result."""
    rank = x.rank + len(where)
    rest = iter(x.extents)
    extents = tuple(UNIT if k in where else next(rest) for k in range(rank))
    remaining = [k for k in range(rank) if k not in where]
    return ElementRule(extents, x.dtype, lambda index: x.at(tuple(index[k] for k in remaining)), x.weak, x.cost)


@handles(LAZY, np.expand_dims)
def _expand_dims(w: LoopBuilder, call: Call) -> ElementRule:
    array, axis = arguments(w, call, "a", "axis")
    x = lazy(w, array)
    value = static(w, axis, "an axis")
    count = len(value) if isinstance(value, (tuple, list)) else 1
    return with_unit_axes(x, axes_of(w, axis, x.rank + count))


@handles(LAZY, np.atleast_1d, np.atleast_2d, np.atleast_3d)
def _atleast(w: LoopBuilder, call: Call) -> ElementRule:
    (array,) = call.args
    x = lazy(w, array)
    ranks: dict[Any, int] = {np.atleast_1d: 1, np.atleast_2d: 2, np.atleast_3d: 3}
    rank = ranks[call.func]
    if x.rank >= rank:
        return x
    if rank == 3:
        return with_unit_axes(x, {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[x.rank])
    return with_unit_axes(x, tuple(range(rank - x.rank)))


@handles(LAZY, np.squeeze)
def _squeeze(w: LoopBuilder, call: Call) -> ElementRule:
    array, axis = arguments(w, call, "a", "axis")
    x = lazy(w, array)
    assert isinstance(call.type, Array)
    if axis is None:
        gone = {k for k, extent in enumerate(x.extents) if extent.is_unit}
        if x.rank - len(gone) != call.type.rank:
            raise w.unsupported("np.squeeze of axes that are not known to have size 1")
    else:
        gone = set(axes_of(w, axis, x.rank))
        for k in gone:
            if not x.extents[k].is_unit:
                several = Call(operator.ne, (x.extents[k].size, Const(1)), (), BOOL)
                w.check(several, ValueError, "cannot squeeze an axis whose size is not 1")

    def at(index: Indices) -> Expr:
        rest = iter(index)
        return x.at(tuple(Const(0) if k in gone else next(rest) for k in range(x.rank)))

    return ElementRule(tuple(extent for k, extent in enumerate(x.extents) if k not in gone), x.dtype, at)


@handles(LAZY, np.broadcast_to)
def _broadcast_to(w: LoopBuilder, call: Call) -> ElementRule:
    array, shape = arguments(w, call, "array", "shape")
    extents = new_extents(w, shape)
    return fit(w, once(w, lazy(w, array), len(extents)), extents)


@handles(LAZY, np.copy, np.array, np.asarray, np.ascontiguousarray, np.real, np.asanyarray)
def _same(w: LoopBuilder, call: Call) -> ElementRule:
    assert isinstance(call.type, Array)
    more = [name for name, _ in call.kwargs if name not in ("copy", "dtype", "order")]
    if more:
        raise w.unsupported(call.func, f"with {more[0]}=")
    if isinstance(call.args[0], Tuple) or isinstance(call.args[0].type, ListOf):
        return w.array(w.materialize(call))
    x = lazy(w, call.args[0])
    if x.weak:
        scalar_ops.representable(w, x.at(()), call.type.dtype)
    return as_dtype(x, call.type.dtype)


@handles(LAZY, np.astype)
def _astype(w: LoopBuilder, call: Call) -> ElementRule:
    assert isinstance(call.type, Array)
    return as_dtype(lazy(w, call.args[0]), call.type.dtype)


@handles(SCALAR, np.astype)
def _astype_number(w: LoopBuilder, call: Call) -> Expr:
    """The same for an array without axes."""
    assert isinstance(call.type, Scalar)
    return precision.convert(lazy(w, call.args[0]).at(()), call.type.dtype)


def as_dtype(x: ElementRule, dtype: str) -> ElementRule:
    return x if x.dtype == dtype else ElementRule(x.extents, dtype, lambda index: precision.convert(x.at(index), dtype))


# ---- order of elements -----------------------------------------------------------------------------------------------


def indexed(w: LoopBuilder, x: ElementRule, *items: Any) -> ElementRule:
    """`x[items]` by basic indexing."""
    return loaded(w, x, items)


def _reversed(w: LoopBuilder, x: ElementRule, axes: tuple[int, ...]) -> ElementRule:
    return indexed(w, x, *(Slice(step=Const(-1)) if k in axes else Slice() for k in range(x.rank)))


@handles(LAZY, np.flip, np.flipud, np.fliplr)
def _flip(w: LoopBuilder, call: Call) -> ElementRule:
    array, axis = arguments(w, call, "m", "axis")
    x = lazy(w, array)
    if call.func is not np.flip:
        axis = Const(0 if call.func is np.flipud else 1)
    return _reversed(w, x, axes_of(w, axis, x.rank))


@handles(LAZY, np.rot90)
def _rot90(w: LoopBuilder, call: Call) -> ElementRule:
    array, k, axes = arguments(w, call, "m", "k", "axes")
    x = lazy(w, array)
    turns = (1 if k is None else static(w, k, "k")) % 4
    a, b = axes_of(w, axes, x.rank) if axes is not None else (0, 1)
    if turns == 0:
        return x
    if turns == 2:
        return _reversed(w, x, (a, b))
    order = list(range(x.rank))
    order[a], order[b] = order[b], order[a]
    if turns == 1:
        return permuted(_reversed(w, x, (b,)), tuple(order))
    return _reversed(w, permuted(x, tuple(order)), (b,))


@handles(LAZY, np.roll)
def _roll(w: LoopBuilder, call: Call) -> ElementRule:
    array, shift, axis = arguments(w, call, "a", "shift", "axis")
    x = lazy(w, array)
    if axis is None and x.rank > 1:
        flat = flattened(w, array)
        rolled = Call(np.roll, (flat, shift), (), flat.type)
        shape = Tuple(tuple(w.clamped(extent) for extent in x.extents))
        return w.array(w.materialize(Call(np.reshape, (w.materialize(rolled), shape), (), call.type)))
    axes = axes_of(w, axis, x.rank)
    shifts = shift.items if isinstance(shift, Tuple) else (shift,) * len(axes)
    for k, amount in zip(axes, shifts, strict=True):
        x = _rolled(w, x, k, scalar(w, amount))
    return x


def axis_of(w: LoopBuilder, axis: Any, rank: int) -> int:
    """The single axis that an `axis=` argument denotes."""
    if rank == 0:
        raise w.unsupported("an axis of a number")
    (found,) = axes_of(w, axis, rank)
    return found


def flattened(w: LoopBuilder, array: Expr) -> Var:
    """All elements of an array as one axis, to be read but not stored into."""
    x = w.materialize(array)
    if w.layout(x) != "C":
        x = w.copied(x)
    assert isinstance(x.type, Array)
    flat = w.fresh("flat", Array(x.type.dtype, 1, "C"))
    w.call_new(flat, Call(np.ravel, (x,), (), flat.type))
    return flat


def _rolled(w: LoopBuilder, x: ElementRule, axis: int, shift: Expr) -> ElementRule:
    size = w.clamped(x.extents[axis])
    distance = linear(shift)

    def around(index: Indices) -> Expr:
        """Indices of a constant distance: a loop may have none that wraps but at its ends."""
        source = w.bind(Call(operator.mod, (plus(index[axis], -distance.constant), size), (), INT))
        return x.at((*index[:axis], source, *index[axis + 1 :]))

    if distance.is_constant:
        return ElementRule(x.extents, x.dtype, around)
    safe = Call(max, (size, Const(1)), (), INT)  # an empty axis has nothing to move
    start = w.bind(Call(operator.mod, (Call(operator.neg, (shift,), (), INT), safe), (), INT), "start")

    def at(index: Indices) -> Expr:
        moved = w.bind(plus(index[axis], start))
        beyond = Call(operator.ge, (moved, size), (), BOOL)
        source = w.bind(Call(intrinsics.ifelse, (beyond, minus(moved, size), moved), (), INT))
        return x.at((*index[:axis], source, *index[axis + 1 :]))

    return ElementRule(x.extents, x.dtype, at)


# ---- copies of elements ----------------------------------------------------------------------------------------------


def cheap(w: LoopBuilder, x: ElementRule) -> ElementRule:
    return stored_once(w, x) if x.cost else x


@handles(LAZY, np.tile)
def _tile(w: LoopBuilder, call: Call) -> ElementRule:
    array, reps = arguments(w, call, "A", "reps")
    x = cheap(w, lazy(w, array))
    counts = [scalar(w, item) for item in (reps.items if isinstance(reps, Tuple) else (reps,))]
    if isinstance(reps, Const) and isinstance(reps.value, tuple):
        counts = [Const(value) for value in reps.value]
    x = with_unit_axes(x, tuple(range(max(0, len(counts) - x.rank))))
    counts = [w.bind(count, "copies") for count in [Const(1)] * (x.rank - len(counts)) + counts]
    for count in counts:
        w.require(w.facts.form(count), ValueError, NEGATIVE)
    extents = tuple(
        extent if count == Const(1) else w.extent(times(w.clamped(extent), count))
        for extent, count in zip(x.extents, counts, strict=True)
    )

    def at(index: Indices) -> Expr:
        where = [
            i if count == Const(1) else Const(0) if extent.is_unit else _mod(i, extent)
            for i, count, extent in zip(index, counts, x.extents, strict=True)
        ]
        return x.at(tuple(where))

    return ElementRule(extents, x.dtype, at)


def _mod(index: Expr, extent: Extent) -> Expr:
    return Call(operator.mod, (index, extent.size), (), INT)


@handles(LAZY, np.repeat)
def _repeat(w: LoopBuilder, call: Call) -> ElementRule:
    array, repeats, axis = arguments(w, call, "a", "repeats", "axis")
    if not isinstance(repeats.type, Scalar):
        return w.array(w.materialize(call))
    if axis is None and isinstance(array.type, Array) and array.type.rank != 1:
        array = flattened(w, array)
    x = cheap(w, lazy(w, array))
    k = 0 if axis is None else axes_of(w, axis, x.rank)[0]
    count = w.bind(scalar(w, repeats), "copies")
    w.require(w.facts.form(count), ValueError, NEGATIVE)
    extent = w.extent(times(w.clamped(x.extents[k]), count))

    def at(index: Indices) -> Expr:
        source = Call(operator.floordiv, (index[k], count), (), INT)
        return x.at((*index[:k], source, *index[k + 1 :]))

    return ElementRule((*x.extents[:k], extent, *x.extents[k + 1 :]), x.dtype, at)


@handles(LAZY, np.pad)
def _pad(w: LoopBuilder, call: Call) -> ElementRule:
    array, widths, mode, values = arguments(w, call, "array", "pad_width", "mode", "constant_values")
    x = lazy(w, array)
    if mode is not None and mode != Const("constant"):
        raise w.unsupported("np.pad with another mode than 'constant'")
    value = w.bind(scalar(w, values)) if values is not None else Const(0)
    given = Scalar(precision.dtype_of(value), False)
    value = precision.convert(scalar_ops.storable(w, value, given, x.dtype, chosen=False), x.dtype)
    pairs = [tuple(w.bind(scalar(w, width)) for width in pair) for pair in _pad_widths(widths, x.rank)]
    extents = tuple(
        w.extent(plus(plus(w.clamped(extent), before), after))
        for extent, (before, after) in zip(x.extents, pairs, strict=True)
    )

    def at(index: Indices) -> Expr:
        where = [minus(i, before) for i, (before, _) in zip(index, pairs, strict=True)]
        inside: list[Expr] = []
        for i, extent, pair in zip(where, x.extents, pairs, strict=True):
            if pair != (Const(0), Const(0)):
                inside.append(Call(operator.ge, (i, Const(0)), (), BOOL))
                inside.append(Call(operator.lt, (i, extent.size), (), BOOL))
        element = x.at(tuple(where))
        if not inside:
            return element
        test = inside[0]
        for part in inside[1:]:
            test = Call(intrinsics.and_, (test, part), (), BOOL)
        return Call(intrinsics.ifelse, (test, element, value), (), Scalar(x.dtype, False))

    return ElementRule(extents, x.dtype, at)


def _pad_widths(widths: Expr, rank: int) -> list[tuple[Expr, Expr]]:
    """`n`, `(n,)`, `(before, after)` or one pair for each axis."""
    if isinstance(widths, Const) and isinstance(widths.value, tuple):
        widths = _as_tuple(widths.value)
    if not isinstance(widths, Tuple):
        return [(widths, widths)] * rank
    if not any(isinstance(item, Tuple) for item in widths.items):
        before, after = (widths.items * 2)[:2]
        return [(before, after)] * rank
    pairs = [(item.items * 2)[:2] for item in widths.items if isinstance(item, Tuple)]
    return [(a, b) for a, b in (pairs * rank if len(pairs) == 1 else pairs)]


def _as_tuple(value: Any) -> Expr:
    return Tuple(tuple(map(_as_tuple, value))) if isinstance(value, tuple) else Const(value)
