"""Arrays whose elements are functions of the index: triangles, diagonals, outer products, differences, constants."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.ir import intrinsics
from tapegen.ir.affine import minus, plus, times
from tapegen.ir.nodes import Call, Const, Expr, Slice
from tapegen.ir.types import BOOL, INT, Array, Scalar
from tapegen.loops.analysis.symbolic_bounds import Extent, Extents
from tapegen.loops.legalize import precision, scalar_ops
from tapegen.loops.legalize.builder import ElementRule, Indices, LoopBuilder
from tapegen.loops.legalize.registry import LAZY, arguments, handles
from tapegen.loops.scalarize.broadcasting import fit
from tapegen.loops.scalarize.expressions import lazy, loaded, once, scalar
from tapegen.loops.scalarize.permutations import (
    as_dtype,
    axis_of,
    cheap,
    flattened,
    new_extents,
    static,
    with_unit_axes,
)

# ---- triangles, diagonals, products of axes --------------------------------------------------------------------------


@handles(LAZY, np.triu, np.tril)
def _triangle(w: LoopBuilder, call: Call) -> ElementRule:
    array, k = arguments(w, call, "m", "k")
    x = lazy(w, array)
    offset = w.bind(scalar(w, k)) if k is not None else Const(0)
    if x.rank == 1:
        row = x
        x = ElementRule((x.extents[0], x.extents[0]), x.dtype, lambda index: row.at(index[1:]))
    keep = operator.ge if call.func is np.triu else operator.le
    zero = precision.convert(Const(0.0), x.dtype)

    def at(index: Indices) -> Expr:
        test = Call(keep, (index[-1], plus(index[-2], offset)), (), BOOL)
        return Call(intrinsics.ifelse, (test, x.at(index), zero), (), Scalar(x.dtype, False))

    return ElementRule(x.extents, x.dtype, at)


@handles(LAZY, np.diag, np.diagflat)
def _diag(w: LoopBuilder, call: Call) -> ElementRule:
    array, k = arguments(w, call, "v", "k")
    x = lazy(w, array)
    offset = w.bind(scalar(w, k)) if k is not None else Const(0)
    if x.rank == 2 and call.func is np.diag:
        return diagonal(w, x, offset, 0, 1)
    if x.rank != 1:
        raise w.unsupported("np.diagflat of a matrix")
    size = w.extent(plus(w.clamped(x.extents[0]), w.bind(Call(abs, (offset,), (), INT)) if offset != Const(0) else 0))
    column = w.bind(Call(max, (offset, Const(0)), (), INT)) if offset != Const(0) else Const(0)
    zero = precision.convert(Const(0.0), x.dtype)

    def at(index: Indices) -> Expr:
        test = Call(operator.eq, (index[1], plus(index[0], offset)), (), BOOL)
        return Call(intrinsics.ifelse, (test, x.at((minus(index[1], column),)), zero), (), Scalar(x.dtype, False))

    return ElementRule((size, size), x.dtype, at)


def diagonal(w: LoopBuilder, x: ElementRule, offset: Expr, axis1: int, axis2: int) -> ElementRule:
    """The diagonal of two axes, as the last axis."""
    rows, columns = w.clamped(x.extents[axis1]), w.clamped(x.extents[axis2])
    down: Expr = Const(0)
    right: Expr = Const(0)
    if offset != Const(0):
        down = w.bind(Call(max, (Call(operator.neg, (offset,), (), INT), Const(0)), (), INT))
        right = w.bind(Call(max, (offset, Const(0)), (), INT))
    if down == right and w.facts.equal(x.extents[axis1].form, x.extents[axis2].form):
        size = x.extents[axis1]
    else:
        size = w.extent(w.bind(Call(min, (minus(rows, down), minus(columns, right)), (), INT), "n"))
    rest = [k for k in range(x.rank) if k not in (axis1, axis2)]

    def at(index: Indices) -> Expr:
        where = dict(zip(rest, index[:-1], strict=True))
        where[axis1], where[axis2] = plus(index[-1], down), plus(index[-1], right)
        return x.at(tuple(where[k] for k in range(x.rank)))

    return ElementRule((*(x.extents[k] for k in rest), size), x.dtype, at)


@handles(LAZY, np.diagonal, np.linalg.diagonal)
def _diagonal(w: LoopBuilder, call: Call) -> ElementRule:
    array, offset, axis1, axis2 = arguments(w, call, "a", "offset", "axis1", "axis2")
    x = lazy(w, array)
    default = (-2, -1) if call.func is np.linalg.diagonal else (0, 1)
    first, second = (
        (fallback if axis is None else static(w, axis, "an axis")) % x.rank
        for axis, fallback in zip((axis1, axis2), default)
    )
    return diagonal(w, x, w.bind(scalar(w, offset)) if offset is not None else Const(0), first, second)


@handles(LAZY, np.outer)
def _outer(w: LoopBuilder, call: Call) -> ElementRule:
    a, b = (once(w, lazy(w, arg), 2) for arg in call.args)
    if a.rank != 1 or b.rank != 1:
        raise w.unsupported("np.outer of arrays that are not vectors")
    assert isinstance(call.type, Array)
    type_ = Scalar(call.type.dtype, False)

    def at(index: Indices) -> Expr:
        return scalar_ops.operation(w, operator.mul, (a.at(index[:1]), b.at(index[1:])), type_)

    return ElementRule((*a.extents, *b.extents), call.type.dtype, at)


@handles(LAZY, np.kron)
def _kron(w: LoopBuilder, call: Call) -> ElementRule:
    a, b = (cheap(w, lazy(w, arg)) for arg in call.args)
    assert isinstance(call.type, Array)
    type_ = Scalar(call.type.dtype, False)
    rank = max(a.rank, b.rank)
    a, b = (with_unit_axes(x, tuple(range(rank - x.rank))) for x in (a, b))
    extents = tuple(w.extent(times(w.clamped(p), w.clamped(q))) for p, q in zip(a.extents, b.extents, strict=True))

    def at(index: Indices) -> Expr:
        big = tuple(_part(i, extent, operator.floordiv) for i, extent in zip(index, b.extents, strict=True))
        small = tuple(_part(i, extent, operator.mod) for i, extent in zip(index, b.extents, strict=True))
        return scalar_ops.operation(w, operator.mul, (a.at(big), b.at(small)), type_)

    return ElementRule(extents, call.type.dtype, at)


def _part(index: Expr, extent: Extent, func: Callable[..., Any]) -> Expr:
    if extent.is_unit:
        return index if func is operator.floordiv else Const(0)
    return Call(func, (index, extent.size), (), INT)


@handles(LAZY, np.diff)
def _diff(w: LoopBuilder, call: Call) -> ElementRule:
    array, n, axis = arguments(w, call, "a", "n", "axis")
    x = lazy(w, array)
    k = axis_of(w, Const(-1) if axis is None else axis, x.rank)
    assert isinstance(call.type, Array)
    for _ in range(1 if n is None else static(w, n, "n")):
        x = _differences(w, x, k, call.type.dtype)
    return x


def _differences(w: LoopBuilder, x: ElementRule, axis: int, dtype: str) -> ElementRule:
    extent = w.extent(plus(x.extents[axis].size, -1))
    type_ = Scalar(dtype, False)
    func = operator.xor if dtype == "bool" else operator.sub

    def at(index: Indices) -> Expr:
        upper = x.at((*index[:axis], plus(index[axis], 1), *index[axis + 1 :]))
        return scalar_ops.operation(w, func, (upper, x.at(index)), type_)

    return ElementRule((*x.extents[:axis], extent, *x.extents[axis + 1 :]), dtype, at)


@handles(LAZY, np.take)
def _take(w: LoopBuilder, call: Call) -> ElementRule:
    array, indices, axis = arguments(w, call, "a", "indices", "axis")
    if not isinstance(array.type, Array):
        raise w.unsupported(call.func, "of a number")
    x = lazy(w, flattened(w, array) if axis is None and array.type.rank != 1 else array)
    k = axis_of(w, Const(0) if axis is None else axis, x.rank)
    if isinstance(indices.type, Array) and indices.type.dtype == "bool":  # positions, not a mask
        indices = Call(np.astype, (indices, Const(np.int64)), (), replace(indices.type, dtype="int64"))
    return loaded(w, x, (*(Slice(),) * k, indices))


# ---- formulas --------------------------------------------------------------------------------------------------------


def constant(value: Expr, extents: Extents, dtype: str) -> ElementRule:
    """An array of equal elements."""
    element = precision.convert(value, dtype)
    return ElementRule(extents, dtype, lambda index: element)


@handles(LAZY, np.zeros, np.ones, np.zeros_like, np.ones_like)
def _constant(w: LoopBuilder, call: Call) -> ElementRule:
    assert isinstance(call.type, Array)
    like = call.func in (np.zeros_like, np.ones_like)
    extents = lazy(w, call.args[0]).extents if like else new_extents(w, call.args[0])
    return constant(Const(0.0 if call.func in (np.zeros, np.zeros_like) else 1.0), extents, call.type.dtype)


@handles(LAZY, np.full, np.full_like)
def _full(w: LoopBuilder, call: Call) -> ElementRule:
    assert isinstance(call.type, Array)
    shape, value, _ = arguments(w, call, "shape" if call.func is np.full else "a", "fill_value", "dtype")
    extents = lazy(w, shape).extents if call.func is np.full_like else new_extents(w, shape)
    filling = lazy(w, value)
    if filling.rank:
        return as_dtype(fit(w, filling, extents), call.type.dtype)
    value = scalar_ops.representable(w, filling.at(()), call.type.dtype)
    return constant(value, extents, call.type.dtype)


@handles(LAZY, np.eye, np.identity)
def _eye(w: LoopBuilder, call: Call) -> ElementRule:
    assert isinstance(call.type, Array)
    if call.func is np.identity:
        rows, columns, k = call.args[0], None, None
    else:
        rows, columns, k, _ = arguments(w, call, "N", "M", "k", "dtype")
    (first,) = new_extents(w, rows)
    (second,) = (first,) if columns is None else new_extents(w, columns)
    offset = w.bind(scalar(w, k)) if k is not None else Const(0)
    one, zero = (precision.convert(Const(value), call.type.dtype) for value in (1.0, 0.0))
    type_ = Scalar(call.type.dtype, False)

    def at(index: Indices) -> Expr:
        test = Call(operator.eq, (index[1], plus(index[0], offset)), (), BOOL)
        return Call(intrinsics.ifelse, (test, one, zero), (), type_)

    return ElementRule((first, second), call.type.dtype, at)


@handles(LAZY, np.arange)
def _arange(w: LoopBuilder, call: Call) -> ElementRule:
    assert isinstance(call.type, Array)
    args = [scalar(w, arg) for arg in call.args]
    if call.type.dtype != "int64" or len(args) > 2 or call.kwargs:
        return w.array(w.materialize(call))
    start, stop = (Const(0), args[0]) if len(args) == 1 else args
    start = w.bind(start)
    return ElementRule((w.extent(minus(w.bind(stop, "n"), start)),), "int64", lambda index: plus(start, index[0]))
