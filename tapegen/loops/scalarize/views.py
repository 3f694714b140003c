"""Views as index maps of their base; they are created for numba only where the whole view is needed."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tapegen.ir import intrinsics
from tapegen.ir.affine import minus, plus, times
from tapegen.ir.nodes import Call, Const, Expr, Load, Slice, Tuple, Var
from tapegen.ir.types import BOOL, INT, Array, Scalar, TupleOf
from tapegen.loops.analysis.symbolic_bounds import UNIT, Extents
from tapegen.loops.legalize.builder import ElementRule, Indices, LoopBuilder
from tapegen.loops.legalize.registry import FILL, LAZY, SCALAR, SEVERAL, arguments, handles
from tapegen.loops.scalarize.expressions import lazy, scalar
from tapegen.loops.scalarize.permutations import cheap, shape_extents, static
from tapegen.loops.scalarize.slicing import position

RESHAPES = frozenset({np.reshape, np.ravel})
_SAME = frozenset({np.asarray, np.real, np.asanyarray})


def is_place(expr: Any) -> bool:
    """Whether an expression denotes the memory of a variable or a part of it."""
    match expr:
        case Var():
            return isinstance(expr.type, Array)
        case Load():
            return isinstance(expr.type, Array) and not any(
                not isinstance(item, Slice) and isinstance(item.type, Array) for item in expr.index
            )
        case Call(func, (first, *_)):
            return func in intrinsics.VIEW_CALLS and is_place(first)
    return False


def atomic_index(w: LoopBuilder, load: Load) -> Load:
    """A basic-index Load whose integers and bounds are atoms or `i + 1`, checked where they are not proved."""
    base = w.array(load.array)
    items: list[Any] = []
    axes = iter(base.extents)
    for item in load.index:
        if isinstance(item, Slice):
            next(axes)
            parts = (None if p is None else _bound(w, p) for p in (item.lo, item.hi, item.step))
            items.append(Slice(*parts))
        elif item == Const(None):
            items.append(item)
        else:
            extent, number = next(axes), w.bind(scalar(w, item))
            own = load.array in w.tapes
            items.append(number if own else position(w, extent, number))
    return replace(load, index=tuple(items))


def _bound(w: LoopBuilder, expr: Expr) -> Expr:
    number = scalar(w, expr)
    match number:
        case Call(operator.add | operator.sub, (Var(), Const())):
            return number
    return w.bind(number)


def native_view(w: LoopBuilder, expr: Expr) -> Expr | None:
    """A view in a variant that numba supports, or None."""
    if isinstance(expr, (Var, Load)):
        return _without_axes(expr) if isinstance(expr, Load) and w.layout(expr.array) == "C" else expr
    assert isinstance(expr, Call)
    inner = expr.args[0]
    base = inner if isinstance(inner, Var) else w.materialize(inner)
    if expr.func in _SAME:
        return base
    if expr.func in (intrinsics.real_part, intrinsics.imaginary_part):
        return Call(expr.func, (base,), (), expr.type)
    if expr.func is np.broadcast_to:
        sizes = tuple(w.clamped(extent) for extent in shape_extents(w, expr.args[1]))
        return Call(np.broadcast_to, (base, Tuple(sizes)), (), expr.type)
    if expr.func is sliding_window_view:
        _, windows, axis = arguments(w, expr, "x", "window_shape", "axis")
        sizes = tuple(w.clamped(extent) for extent in shape_extents(w, windows))
        axes = Tuple(tuple(Const(k) for k in _axes_of_windows(w, axis, w.array(base).rank)))
        return Call(sliding_window_view, (base, Tuple(sizes), axes), (), expr.type)
    assert isinstance(base.type, Array)
    stand_in = Var("?", base.type)
    w.facts.set_shape(stand_in, lazy(w, base).extents)
    shown = LAZY[expr.func](w, replace(expr, args=(stand_in, *expr.args[1:])))
    w.facts.forget([stand_in])
    index = tuple(Var(f"?{k}", INT) for k in range(shown.rank))
    element = shown.at(index)
    assert isinstance(element, Load)
    return _as_indexing(base, element, index, w.array(base).extents, expr)


def _without_axes(load: Load) -> Expr:
    """A view of an element, which numba would make a scalar, as an axis of one element without that axis."""
    if not load.index:
        return load.array
    *front, last = load.index
    if not isinstance(load.type, Array) or load.type.rank or isinstance(last, Slice):
        return load
    if any(isinstance(item, Slice) or not isinstance(item.type, Scalar) for item in load.index):
        return load
    one = Load(load.array, (*front, Slice(last, plus(last, Const(1)))), Array(load.type.dtype, 1, "C"))
    return Call(np.reshape, (one, Tuple(())), (), replace(load.type, layout="C"))


def _as_indexing(base: Var, element: Load, index: tuple[Var, ...], extents: Extents, expr: Call) -> Expr | None:
    """`base[...]` with permuted axes, derived from the element `index` of the view."""
    items: list[Any] = []
    order: list[int] = []
    for item, extent in zip(element.index, extents, strict=True):
        if item in index:
            items.append(Slice())
            order.append(index.index(item))
        elif isinstance(item, Const):
            items.append(item)
        else:
            from_end = [k for k, i in enumerate(index) if item == minus(minus(extent.size, 1), i)]
            if len(from_end) != 1:
                return None
            items.append(Slice(step=Const(-1)))
            order.append(from_end[0])
    if len(set(order)) != len(order):
        return None
    part: Expr = base
    assert isinstance(base.type, Array)
    if any(item != Slice() for item in items):
        part = Load(base, tuple(items), Array(base.type.dtype, len(order), "A"))
    if order != sorted(order):
        rank = len(order)
        turned = Array(base.type.dtype, rank, "A")
        if order == sorted(order, reverse=True):
            part = Call(intrinsics.transpose_view, (part,), (), turned)
        else:
            axes = tuple(Const(order.index(k)) for k in sorted(order))
            part = Call(np.transpose, (part, Tuple(axes)), (), turned)
    new = [k for k in range(len(index)) if k not in order]
    for k in new:
        part = Call(np.expand_dims, (part, Const(k)), (), expr.type)
    return part


_VIEW_OR_COPY = "reshape of an array that may be a view or a copy"


@handles(FILL, intrinsics.zeros_beside)
def _beside(w: LoopBuilder, call: Call, target: Var) -> None:
    raise w.unsupported(_VIEW_OR_COPY)  # only cotangents of such reshapes have the memory layout of their arrays


def reshaped(w: LoopBuilder, call: Call) -> tuple[Expr, Extents | None]:
    """`x.reshape(shape)` of a contiguous array, and the new extents where they are stated."""
    inner = call.args[0]
    options = dict(call.kwargs)
    if options.get("order", Const("C")) != Const("C") or (call.func is np.ravel and len(call.args) > 1):
        raise w.unsupported("reshape in another order")
    if not isinstance(inner.type, Array):
        inner = Call(np.array, (Tuple((inner,)),), (), Array(inner.type.dtype, 1, "C", (True,)))  # type: ignore[union-attr]
    shown = inner.type.rank > 0 and w.shows_sharing()  # type: ignore[union-attr]
    rows = w.in_rows(inner) if shown else inner
    if rows is None:
        raise w.unsupported(_VIEW_OR_COPY)
    base = rows if isinstance(rows, Var) else w.materialize(rows)
    assert isinstance(base.type, Array)
    if not shown and w.layout(base) != "C" and base.type.rank > 0:
        base = w.copied(base)
    if call.func is np.ravel:
        return Call(np.ravel, (base,), (), call.type), None
    shape = options.get("shape", options.get("newshape")) if len(call.args) == 1 else call.args[1]
    if len(call.args) > 2:
        shape = Tuple(call.args[1:])
    if shape is None:
        raise w.unsupported("reshape of this form")
    if isinstance(shape, (Tuple, Const)) and -1 in _known(shape):
        value = shape if isinstance(shape, Tuple) else Const(static(w, shape, "a shape"))
        return Call(np.reshape, (base, scalar(w, value)), (), call.type), None
    extents = shape_extents(w, shape)
    sizes = tuple(w.clamped(extent) for extent in extents)
    return Call(np.reshape, (base, sizes[0] if len(sizes) == 1 else Tuple(sizes)), (), call.type), extents


@handles(SCALAR, np.reshape, np.squeeze, np.ravel)
def _only_element(w: LoopBuilder, call: Call) -> Expr:
    """The element of an array of one element, as a scalar."""
    x = lazy(w, call.args[0])
    for extent in x.extents:
        if not w.facts.equal(extent.form, UNIT.form):
            several = Call(operator.ne, (w.clamped(extent), Const(1)), (), BOOL)
            w.check(several, ValueError, "cannot reshape an array of this size into a number")
    return x.at((Const(0),) * x.rank)


@handles(SEVERAL, np.split, np.array_split, np.hsplit, np.vsplit)
def _split(w: LoopBuilder, call: Call) -> tuple[Expr, ...]:
    """Parts of an array, as views."""
    array, sections, axis = arguments(w, call, "ary", "indices_or_sections", "axis")
    base = array if isinstance(array, Var) else w.materialize(array)
    assert isinstance(base.type, Array)
    assert isinstance(call.type, TupleOf)
    default = 1 if call.func is np.hsplit and base.type.rank > 1 else 0
    k = default if axis is None else static(w, axis, "an axis") % base.type.rank
    size = w.clamped(w.array(base).extents[k])
    count = len(call.type.items)
    if isinstance(sections, Tuple):
        bounds: list[Expr] = [Const(0), *(scalar(w, item) for item in sections.items), size]
    elif call.func is np.array_split:
        raise w.unsupported("np.array_split into a number of parts")
    else:
        left = Call(operator.mod, (size, Const(count)), (), INT)
        wrong = Call(operator.ne, (left, Const(0)), (), BOOL)
        w.check(wrong, ValueError, "array split does not result in an equal division")
        part = w.bind(Call(operator.floordiv, (size, Const(count)), (), INT), "n")
        bounds = [times(Const(j), part) for j in range(count)] + [size]
    front = (Slice(),) * k
    return tuple(
        Load(base, (*front, Slice(lo, hi)), type_)
        for lo, hi, type_ in zip(bounds, bounds[1:], call.type.items, strict=False)
    )


def _axes_of_windows(w: LoopBuilder, axis: Any, rank: int) -> tuple[int, ...]:
    axes = range(rank) if axis is None or axis == Const(None) else static(w, axis, "an axis")
    return tuple(k % rank for k in ((axes,) if isinstance(axes, int) else axes))


@handles(LAZY, sliding_window_view)
def _windows(w: LoopBuilder, call: Call) -> ElementRule:
    array, windows, axis = arguments(w, call, "x", "window_shape", "axis")
    x = cheap(w, lazy(w, array))
    sizes = shape_extents(w, windows)
    axes = _axes_of_windows(w, axis, x.rank)
    extents = list(x.extents)
    for k, size in zip(axes, sizes, strict=True):
        w.require(size.form, ValueError, "`window_shape` cannot contain negative values")
        w.require(extents[k].form - size.form, ValueError, "window shape cannot be larger than input array shape")
        extents[k] = w.extent(w.bind(plus(minus(extents[k].size, size.size), 1), "n"))

    def at(index: Indices) -> Expr:
        where = list(index[: x.rank])
        for k, shift in zip(axes, index[x.rank :], strict=True):
            where[k] = plus(where[k], shift)
        return x.at(tuple(where))

    return ElementRule((*extents, *sizes), x.dtype, at)


@handles(SEVERAL, np.meshgrid)
def _meshgrid(w: LoopBuilder, call: Call) -> tuple[Expr, ...]:
    options = dict(call.kwargs)
    indexing = static(w, options.pop("indexing", Const("xy")), "indexing")
    if options or any(not isinstance(arg.type, Array) or arg.type.rank != 1 for arg in call.args):
        raise w.unsupported("np.meshgrid of this form")
    vectors = [w.materialize(arg) for arg in call.args]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        order[:2] = [1, 0]
    sizes = Tuple(tuple(w.clamped(w.array(vectors[k]).extents[0]) for k in order))
    assert isinstance(call.type, TupleOf)
    grids: list[Expr] = []
    for k, (vector, type_) in enumerate(zip(vectors, call.type.items, strict=True)):
        assert isinstance(type_, Array)
        index = tuple(Slice() if axis == k else Const(None) for axis in order)
        spread = Load(vector, index, Array(type_.dtype, type_.rank, "A", tuple(axis != k for axis in order)))
        grids.append(Call(np.copy, (Call(np.broadcast_to, (spread, sizes), (), type_),), (), type_))
    return tuple(grids)


def _known(shape: Expr) -> tuple[Any, ...]:
    items = shape.items if isinstance(shape, Tuple) else (shape,)
    return tuple(item.value for item in items if isinstance(item, Const))
