"""Concatenation: new arrays from parts, and arrays whose size depends on values."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.affine import minus, plus
from tapegen.ir.nodes import Assign, Call, Const, Expr, If, Load, Store, Tuple, Var
from tapegen.ir.types import BOOL, FLOAT, INT, Array, ListOf, Scalar, Type
from tapegen.loops.analysis.symbolic_bounds import Extents, dim
from tapegen.loops.legalize import precision, scalar_ops
from tapegen.loops.legalize.builder import ElementRule, Indices, LoopBuilder
from tapegen.loops.legalize.registry import FILL, LAZY, arguments, handles
from tapegen.loops.scalarize.broadcasting import broadcast, fit
from tapegen.loops.scalarize.expressions import lazy, scalar
from tapegen.loops.scalarize.loop_nests import allocate, counters_for, fill, nest
from tapegen.loops.scalarize.permutations import axes_of, axis_of, flattened, new_extents, static, with_unit_axes
from tapegen.loops.scalarize.slicing import checked, from_start

# ---- joining ---------------------------------------------------------------------------------------------------------


_EMPTY: frozenset[Any] = frozenset({np.empty, np.empty_like})


def _parts(w: LoopBuilder, sequence: Expr) -> list[ElementRule]:
    if not isinstance(sequence, Tuple):
        raise w.unsupported("joining arrays of a run-time list")
    return [
        _unset(w, item) if isinstance(item, Call) and item.func in _EMPTY else lazy(w, item) for item in sequence.items
    ]


def _unset(w: LoopBuilder, call: Call) -> ElementRule:
    """A new uninitialized array; concatenation needs only its size."""
    extents = new_extents(w, call.args[0]) if call.func is np.empty else lazy(w, call.args[0]).extents
    return ElementRule(extents, "", lambda index: Const(0))


def join(w: LoopBuilder, parts: list[ElementRule], axis: int, target: Var) -> None:
    """Parts one after another along an axis."""
    first = parts[0].extents
    starts: list[Expr] = [Const(0)]
    for part in parts:
        starts.append(plus(starts[-1], w.clamped(part.extents[axis])))
    others = [tuple(e for k, e in enumerate(part.extents) if k != axis) for part in parts]
    for other in others[1:]:
        for a, b in zip(others[0], other, strict=True):
            if not w.facts.equal(a.form, b.form):
                wrong = Call(operator.ne, (w.clamped(a), w.clamped(b)), (), BOOL)
                w.check(wrong, ValueError, "all dimensions except for the concatenation axis must match")
    allocate(w, target, (*first[:axis], w.extent(starts[-1]), *first[axis + 1 :]))
    out = w.array(target)
    for part, start in zip(parts, starts, strict=False):
        if not part.dtype:
            continue
        extents = (*first[:axis], part.extents[axis], *first[axis + 1 :])
        fill(w, _shifted(out, extents, axis, start), ElementRule(extents, part.dtype, part.at, part.weak), fresh=True)


def _shifted(out: ElementRule, extents: Extents, axis: int, start: Expr) -> ElementRule:
    def at(index: Indices) -> Expr:
        return out.at((*index[:axis], plus(start, index[axis]), *index[axis + 1 :]))

    return ElementRule(extents, out.dtype, at)


@handles(FILL, np.concatenate)
def _concatenate(w: LoopBuilder, call: Call, target: Var) -> None:
    sequence, axis = arguments(w, call, "arrays", "axis")
    parts = _parts(w, sequence)
    if axis == Const(None):
        parts = [_in_a_row(w, expr, part) for expr, part in zip(sequence.items, parts, strict=True)]
        axis = None
    parts = [part if part.rank else with_unit_axes(part, (0,)) for part in parts]  # a scalar that np.ravel was given
    k = axis_of(w, Const(0) if axis is None else axis, parts[0].rank)
    join(w, parts, k, target)


@handles(FILL, np.stack)
def _stack(w: LoopBuilder, call: Call, target: Var) -> None:
    sequence, axis = arguments(w, call, "arrays", "axis")
    if isinstance(sequence.type, ListOf) and axis in (None, Const(0)):
        _array(w, Call(np.array, (sequence,), (), call.type), target)
        return
    parts = _parts(w, sequence)
    (k,) = axes_of(w, Const(0) if axis is None else axis, parts[0].rank + 1)
    join(w, [with_unit_axes(part, (k,)) for part in parts], k, target)


@handles(FILL, np.hstack, np.vstack, np.dstack, np.column_stack)
def _nd_stack(w: LoopBuilder, call: Call, target: Var) -> None:
    parts = [_raised(part, call.func) for part in _parts(w, call.args[0])]
    if call.func is np.hstack:
        axis = 0 if parts[0].rank == 1 else 1
    else:
        axis = {np.vstack: 0, np.column_stack: 1, np.dstack: 2}[call.func]
    join(w, parts, axis, target)


def _raised(part: ElementRule, func: Any) -> ElementRule:
    """A part with at least the number of axes that the stacking function requires."""
    if func is np.column_stack:
        return part if part.rank > 1 else with_unit_axes(part, (1,) if part.rank == 1 else (0, 1))
    if func is np.hstack:
        return part if part.rank else with_unit_axes(part, (0,))
    if func is np.vstack:
        return part if part.rank > 1 else with_unit_axes(part, tuple(range(2 - part.rank)))
    return part if part.rank > 2 else with_unit_axes(part, {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[part.rank])


def _in_a_row(w: LoopBuilder, expr: Expr, part: ElementRule) -> ElementRule:
    """A part with one axis."""
    if part.rank > 1:
        return w.array(flattened(w, expr))
    return part if part.rank else with_unit_axes(part, (0,))


@handles(FILL, np.append)
def _append(w: LoopBuilder, call: Call, target: Var) -> None:
    array, values, axis = arguments(w, call, "arr", "values", "axis")
    parts = [lazy(w, array), lazy(w, values)]
    if axis is None:
        parts = [_in_a_row(w, expr, part) for expr, part in zip((array, values), parts, strict=True)]
    join(w, parts, axes_of(w, Const(0) if axis is None else axis, parts[0].rank)[0], target)


@handles(FILL, np.array, np.asarray)
def _array(w: LoopBuilder, call: Call, target: Var) -> None:
    """An array display: `np.array([a, b, c])`, nested to any depth; the items of a list; or a copy."""
    if isinstance(call.args[0].type, ListOf):
        items = w.bind(scalar(w, call.args[0]), "items")
        assert isinstance(items, Var)
        w.fill_new(target, _items(w, items))
        return
    if not isinstance(call.args[0], Tuple):
        w.fill_new(target, LAZY[call.func](w, call))
        return
    assert isinstance(target.type, Array)
    rank = target.type.rank
    shape: list[int] = []
    level: Expr = call.args[0]
    while isinstance(level, Tuple):
        shape.append(len(level.items))
        level = level.items[0] if level.items else Const(0)
    cells = list(_cells(call.args[0], ()))
    values = [(where, lazy(w, item)) for where, item in cells]
    lead = tuple(w.extent(Const(size)) for size in shape)
    rest = values[0][1].extents if values else ()
    if len(lead) + len(rest) != rank:
        raise w.unsupported("np.array of this form")
    allocate(w, target, (*lead, *rest))
    out = w.array(target)
    for (where, value), (_, item) in zip(values, cells, strict=True):
        if isinstance(item.type, Scalar):
            scalar_ops.storable(w, value.at(()), item.type, out.dtype, chosen=False)
        fill(w, ElementRule(rest, out.dtype, _below(out, where)), fit(w, value, rest), fresh=True)


def _items(w: LoopBuilder, items: Var) -> ElementRule:
    """The scalars in a run-time list, or in its lists or arrays, which must be of equal size."""
    assert isinstance(items.type, ListOf)
    inner = items.type.item
    count = w.extent(w.bind(Call(len, (items,), (), INT), "n"))
    w.facts.assume(count.form)
    if isinstance(inner, Scalar):
        return ElementRule(
            (count,), inner.dtype, lambda index: Call(intrinsics.item, (items, *index), (), inner), inner.python
        )
    number = inner.item if isinstance(inner, ListOf) else inner
    if not isinstance(number, (Scalar, Array)) or (isinstance(inner, ListOf) and isinstance(number, Array)):
        raise w.unsupported("np.array of lists of lists of lists")
    w.check(Call(operator.eq, (count.size, Const(0)), (), BOOL), ValueError, "an array of no rows has another shape")
    extents = tuple(w.extent(w.bind(size, "n")) for size in _sizes(_row(w, items, Const(0), inner)))
    (i,) = w.counters(1)
    with w.block() as body:
        for extent, size in zip(extents, _sizes(_row(w, items, i, inner)), strict=True):
            wrong = Call(operator.ne, (size, extent.size), (), BOOL)
            w.check(wrong, ValueError, "setting an array element with a sequence: the rows differ in size")
    nest(w, (count,), (i,), body)
    for extent in extents:
        w.facts.assume(extent.form)

    def at(index: Indices) -> Expr:
        row = _row(w, items, index[0], inner)
        if isinstance(number, Scalar):
            return Call(intrinsics.item, (row, *index[1:]), (), number)
        return Load(row, index[1:], Scalar(number.dtype, False))

    return ElementRule((count, *extents), number.dtype, at)


def _row(w: LoopBuilder, items: Var, index: Expr, type_: Type) -> Var:
    row = w.fresh("row", type_)
    w.emit(Assign((row,), Call(intrinsics.item, (items, index), (), type_), w.origin))
    return row


def _sizes(row: Var) -> list[Expr]:
    if isinstance(row.type, Array):
        return [dim(row, k) for k in range(row.type.rank)]
    return [Call(len, (row,), (), INT)]


def _below(out: ElementRule, where: tuple[int, ...]) -> Any:
    front = tuple(Const(k) for k in where)
    return lambda index: out.at(front + index)


def _cells(expr: Expr, where: tuple[int, ...]) -> Any:
    if isinstance(expr, Tuple):
        for k, item in enumerate(expr.items):
            yield from _cells(item, (*where, k))
    else:
        yield where, expr


# ---- sizes that depend on values -------------------------------------------------------------------------------------


def count_true(w: LoopBuilder, mask: ElementRule) -> Expr:
    """The number of true elements of a boolean array."""
    key = _lasting(w, mask)
    known: Expr | None = w.facts.selected.get(("count", key)) if key is not None else None
    if known is not None:
        return known
    count = w.fresh("count", INT)
    index = counters_for(w, mask.extents)
    with w.block() as body:
        w.emit(If(mask.at(index), (_step(w, count),), (), w.origin))
    w.emit(Assign((count,), Const(0), w.origin))
    nest(w, mask.extents, index, body)
    w.facts.assume(w.facts.form(count))
    if key is not None:
        w.facts.select("count", key, count)
    return count


def _lasting(w: LoopBuilder, mask: ElementRule) -> Expr | None:
    """The element at an index of a boolean array, protected from stores in the meantime."""
    with w.block() as needed:
        element = mask.at(tuple(Var(f"?{k}", INT) for k in range(mask.rank)))
    arrays = [var for var in traversal.free_vars(element) if isinstance(var.type, Array)]
    plain = all(isinstance(part, (Var, Const, Load)) for part in traversal.subexpressions(element))
    return element if plain and not needed and not any(map(w.is_written, arrays)) else None


def _step(w: LoopBuilder, count: Var) -> Assign:
    return Assign((count,), Call(operator.add, (count, Const(1)), (), INT), w.origin)


def masked(w: LoopBuilder, array: ElementRule, mask: ElementRule, target: Var) -> None:
    """`target = array[mask]` with a mask of the array's own shape."""
    size = w.extent(count_true(w, mask))
    allocate(w, target, (size,))
    place = w.fresh("place", INT)
    index = counters_for(w, mask.extents)
    with w.block() as body:
        store = Store(target, (place,), array.at(index), False, w.origin)
        w.emit(If(mask.at(index), (store, _step(w, place)), (), w.origin))
    w.emit(Assign((place,), Const(0), w.origin))
    nest(w, mask.extents, index, body)


def store_masked(w: LoopBuilder, array: ElementRule, mask: ElementRule, value: ElementRule, accumulate: bool) -> None:
    """`array[mask] = value` with a mask of the array's own shape; the value does not share memory with the array."""
    index = counters_for(w, mask.extents)
    place: Var | None = None
    if value.rank:
        place = w.fresh("place", INT)
        value = fit(w, value, (w.extent(count_true(w, mask)),))
        w.emit(Assign((place,), Const(0), w.origin))
    with w.block() as body:
        with w.block() as hit:
            element = value.at(() if place is None else (place,))
            target = array.at(index)
            assert isinstance(target, Load)
            w.emit(Store(target.array, target.index, precision.convert(element, array.dtype), accumulate, w.origin))
            if place is not None:
                w.emit(_step(w, place))
        w.emit(If(mask.at(index), tuple(hit), (), w.origin))
    nest(w, mask.extents, index, body)


def nonzero(w: LoopBuilder, mask: ElementRule) -> list[Var]:
    """For each axis, the indices of the true elements of a boolean array."""
    key = _lasting(w, mask)
    known: list[Var] | None = w.facts.selected.get(("indices", key)) if key is not None else None
    if known is not None:
        return known
    size = w.extent(count_true(w, mask))
    found = [w.fresh("found", Array("int64", 1, "C")) for _ in mask.extents]
    for var in found:
        allocate(w, var, (size,))
    place = w.fresh("place", INT)
    index = counters_for(w, mask.extents)
    with w.block() as body:
        hit = [Store(var, (place,), i, False, w.origin) for var, i in zip(found, index, strict=True)]
        w.emit(If(mask.at(index), (*hit, _step(w, place)), (), w.origin))
    w.emit(Assign((place,), Const(0), w.origin))
    nest(w, mask.extents, index, body)
    if key is not None:
        w.facts.select("indices", key, found)
    return found


@handles(FILL, np.flatnonzero)
def _flatnonzero(w: LoopBuilder, call: Call, target: Var) -> None:
    x = lazy(w, call.args[0])
    if x.rank != 1:
        raise w.unsupported("np.flatnonzero of a matrix")
    (found,) = nonzero(w, ElementRule(x.extents, "bool", lambda index: precision.convert(x.at(index), "bool")))
    w.call_new(target, found)


@handles(FILL, np.repeat)
def _repeat(w: LoopBuilder, call: Call, target: Var) -> None:
    array, repeats, _ = arguments(w, call, "a", "repeats", "axis")
    if isinstance(repeats, Tuple):
        repeats = Call(np.array, (repeats,), (), Array("int64", 1, "C"))
    if isinstance(repeats.type, Scalar):
        w.fill_new(target, LAZY[np.repeat](w, call))
        return
    x, counts = lazy(w, array), lazy(w, repeats)
    if x.rank != 1 or counts.rank != 1:
        raise w.unsupported("np.repeat by an array along an axis")
    counts = fit(w, counts, x.extents)
    total, place = w.fresh("total", INT), w.fresh("place", INT)
    (i, j) = w.counters(2)
    w.emit(Assign((total,), Const(0), w.origin))
    with w.block() as body:
        count = w.bind(counts.at((i,)))
        w.check(Call(operator.lt, (count, Const(0)), (), BOOL), ValueError, "repeats may not contain negative values")
        w.emit(Assign((total,), Call(operator.add, (total, count), (), INT), w.origin))
    nest(w, x.extents, (i,), body)
    allocate(w, target, (w.extent(total),))
    w.emit(Assign((place,), Const(0), w.origin))
    with w.block() as outer:
        element = w.bind(x.at((i,)), "x")
        with w.block() as inner:
            w.emit(Store(target, (place,), element, False, w.origin), _step(w, place))
        nest(w, (w.extent(counts.at((i,))),), (j,), inner)
    nest(w, x.extents, (i,), outer)


@handles(FILL, np.take_along_axis)
def _take_along_axis(w: LoopBuilder, call: Call, target: Var) -> None:
    array, indices, axis = arguments(w, call, "arr", "indices", "axis")
    if axis == Const(None):
        raise w.unsupported("np.take_along_axis of a flattened array")
    x, which = lazy(w, array), lazy(w, indices)
    k = axis_of(w, Const(-1) if axis is None else axis, x.rank)
    extents = tuple(
        each if n == k else other for n, (each, other) in enumerate(zip(which.extents, x.extents, strict=True))
    )
    which = fit(w, which, extents)

    def at(index: Indices) -> Expr:
        position = from_start(w, x.extents[k], checked(w, x.extents[k], which.at(index)))
        return x.at((*index[:k], position, *index[k + 1 :]))

    w.fill_new(target, ElementRule(extents, x.dtype, at))


@handles(FILL, np.linspace)
def _linspace(w: LoopBuilder, call: Call, target: Var) -> None:
    start, stop, num, endpoint, _ = arguments(w, call, "start", "stop", "num", "endpoint", "dtype")
    assert isinstance(target.type, Array)
    count = w.bind(scalar(w, num), "n") if num is not None else Const(50)
    w.require(w.facts.form(count), ValueError, "the number of samples must be non-negative")
    dtype = target.type.dtype
    closed = endpoint is None or bool(static(w, endpoint, "endpoint"))
    gaps = w.bind(Call(max, (minus(count, 1) if closed else count, Const(1)), (), INT))
    if target.type.rank > 1:
        _linspace_of_arrays(w, [lazy(w, start), lazy(w, stop)], count, gaps, closed, target)
        return
    first, last = (w.bind(precision.convert(scalar(w, part), "float64")) for part in (start, stop))
    step = w.bind(Call(operator.truediv, (Call(operator.sub, (last, first), (), FLOAT), gaps), (), FLOAT), "step")

    def at(index: Indices) -> Expr:
        (i,) = index
        along = Call(operator.add, (Call(operator.mul, (i, step), (), FLOAT), first), (), FLOAT)
        return precision.convert(along, dtype)

    w.fill_new(target, ElementRule((w.extent(count),), dtype, at))
    if closed:  # exactly, whatever the rounding
        final = Store(target, (minus(count, 1),), precision.convert(last, dtype), False, w.origin)
        w.emit(If(Call(operator.gt, (count, Const(1)), (), BOOL), (final,), (), w.origin))


def _linspace_of_arrays(
    w: LoopBuilder, ends: list[ElementRule], count: Expr, gaps: Expr, closed: bool, target: Var
) -> None:
    """Evenly spaced values between the elements of two arrays, along a new first axis."""
    assert isinstance(target.type, Array)
    dtype = target.type.dtype
    extents, selectors = broadcast(w, [end.extents for end in ends])

    def at(index: Indices) -> Expr:
        i, *rest = index
        first, last = (
            w.bind(precision.convert(end.at(select(tuple(rest))), "float64"))
            for end, select in zip(ends, selectors, strict=True)
        )
        step = Call(operator.truediv, (Call(operator.sub, (last, first), (), FLOAT), gaps), (), FLOAT)
        along = Call(operator.add, (Call(operator.mul, (i, step), (), FLOAT), first), (), FLOAT)
        if closed:  # the last one exactly, whatever the rounding
            is_last = Call(operator.eq, (i, Call(max, (minus(count, 1), Const(1)), (), INT)), (), BOOL)
            along = Call(intrinsics.ifelse, (is_last, last, along), (), FLOAT)
        return precision.convert(along, dtype)

    w.fill_new(target, ElementRule((w.extent(count), *extents), dtype, at))
