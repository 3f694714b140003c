"""Calls that numba supports as they are, and functions that are decomposed into other functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.ir.affine import minus
from tapegen.ir.nodes import Assign, Call, Const, Effect, Expr, Load, Slice, Tuple, Var
from tapegen.ir.types import FLOAT, Array, Scalar, Type, is_complex, is_floating
from tapegen.loops.analysis.symbolic_bounds import Extents
from tapegen.loops.legalize.builder import LoopBuilder
from tapegen.loops.legalize.registry import FILL, LAZY, REWRITE, SCALAR, arguments, handles
from tapegen.loops.scalarize.expressions import lazy, opaque, scalar
from tapegen.loops.scalarize.loop_nests import allocate, counters_for, nest
from tapegen.loops.scalarize.permutations import new_extents, static
from tapegen.rules.gradient_modifiers import SURGERY


def rank_of(type_: Type) -> int:
    return type_.rank if isinstance(type_, Array) else 0


# ---- new arrays ------------------------------------------------------------------------------------------------------


@handles(FILL, np.zeros, np.ones, np.empty)
def _new(w: LoopBuilder, call: Call, target: Var) -> None:
    allocate(w, target, new_extents(w, call.args[0]), call.func)


@handles(FILL, np.zeros_like, np.ones_like, np.empty_like)
def _like(w: LoopBuilder, call: Call, target: Var) -> None:
    func = {np.zeros_like: np.zeros, np.ones_like: np.ones, np.empty_like: np.empty}[call.func]
    allocate(w, target, _extents_like(w, call.args[0]), func)


def _extents_like(w: LoopBuilder, array: Expr) -> Extents:
    return lazy(w, array).extents


@handles(FILL, np.copy)
def _copy(w: LoopBuilder, call: Call, target: Var) -> None:
    (array,) = call.args
    if isinstance(array, Var) and array not in w.views and array.type == target.type and w.layout(array) == "C":
        extents = w.facts.extents(array)
        w.call_new(target, call)
        w.facts.set_shape(target, extents)
        return
    w.fill_new(target, LAZY[np.copy](w, call))


@handles(FILL, np.arange)
def _arange(w: LoopBuilder, call: Call, target: Var) -> None:
    assert isinstance(target.type, Array)
    whole = not any(isinstance(arg.type, Scalar) and is_floating(arg.type) for arg in call.args)
    if target.type.dtype != "float64" and not (target.type.dtype == "int64" and whole):
        raise w.unsupported("np.arange with a dtype")
    if any(name != "dtype" for name, _ in call.kwargs) or len(call.args) > 3:
        raise w.unsupported("np.arange of this form")
    args = tuple(w.bind(scalar(w, arg)) for arg in call.args)
    given = args if target.type.dtype == "int64" else tuple(Call(float, (arg,), (), FLOAT) for arg in args)
    w.call_new(target, Call(np.arange, given, (), target.type))
    if whole and len(args) < 3:
        start, stop = (Const(0), args[0]) if len(args) == 1 else args
        w.facts.set_shape(target, (w.extent(minus(stop, start)),))


# ---- calls -----------------------------------------------------------------------------------------------------------


def _matrices_only(call: Call) -> bool:
    known = all(not isinstance(arg, Const) or not isinstance(arg.value, str) for arg in call.args) and not call.kwargs
    return known and all(rank_of(arg.type) <= 2 for arg in call.args) and rank_of(call.args[0].type) == 2


def _vector_only(call: Call) -> bool:
    return all(rank_of(arg.type) <= 1 for arg in call.args) and not call.kwargs


_NATIVE: dict[Any, Callable[[Call], bool]] = {
    **dict.fromkeys(
        (
            *(np.linalg.solve, np.linalg.inv, np.linalg.det, np.linalg.cholesky, np.linalg.slogdet, np.linalg.eigh),
            *(np.linalg.eig, np.linalg.eigvals, np.linalg.eigvalsh, np.linalg.qr, np.linalg.svd, np.linalg.pinv),
            np.linalg.matrix_rank,
        ),
        _matrices_only,
    ),
    np.searchsorted: lambda call: all(rank_of(arg.type) <= 1 for arg in call.args),
    np.asfortranarray: lambda call: not call.kwargs,
    np.convolve: lambda call: _vector_only(call) and len(call.args) == 2,
}


@handles(SCALAR, *_NATIVE)
def _native_number(w: LoopBuilder, call: Call) -> Expr:
    if not _NATIVE[call.func](call):
        raise w.unsupported(call.func, "of this form")
    value = w.fresh("t", call.type)
    w.emit(Assign((value,), opaque(w, call), w.origin))
    return value


@handles(FILL, *_NATIVE)
def _native(w: LoopBuilder, call: Call, target: Var) -> None:
    if not _NATIVE[call.func](call):
        raise w.unsupported(call.func, "of this form")
    w.call_new(target, opaque(w, call))


@handles(FILL, np.sort)
def _sort(w: LoopBuilder, call: Call, target: Var) -> None:
    """A copy whose rows numba sorts in place."""
    array, axis, _ = arguments(w, call, "a", "axis", "kind")
    x = lazy(w, array)
    if axis is not None and static(w, axis, "an axis") not in (-1, x.rank - 1):
        raise w.unsupported("np.sort along another axis than the last")
    w.fill_new(target, x)
    index = counters_for(w, x.extents[:-1])
    row = Load(target, (*index, Slice()), Array(x.dtype, 1, "C")) if x.rank > 1 else target
    nest(w, x.extents[:-1], index, [Effect(Call(np.ndarray.sort, (row,), (), Scalar("bool")), w.origin)])


@handles(FILL, np.argsort)
def _argsort(w: LoopBuilder, call: Call, target: Var) -> None:
    array, axis, _ = arguments(w, call, "a", "axis", "kind")
    if rank_of(array.type) != 1 or (axis is not None and static(w, axis, "an axis") not in (-1, 0)):
        raise w.unsupported("np.argsort along an axis")
    x = w.materialize(array)
    extents = w.array(x).extents
    w.call_new(target, Call(np.argsort, (x,), (("kind", Const("mergesort")),), target.type))
    w.facts.set_shape(target, extents)


# ---- decomposed into other functions ---------------------------------------------------------------------------------


def _call(func: Any, *args: Expr, type_: Type, **kwargs: Expr) -> Call:
    return Call(func, args, tuple(kwargs.items()), type_)


def _dtype(type_: Type) -> str:
    assert isinstance(type_, (Array, Scalar))
    return type_.dtype


def _with_axis(type_: Type, axis: Any) -> Type:
    """The type of a reduction with keepdims."""
    assert isinstance(type_, Array)
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = range(type_.rank) if axis is None else [k % type_.rank for k in given]
    return Array(type_.dtype, type_.rank, "C", tuple(k in axes or type_.is_unit(k) for k in range(type_.rank)))


@handles(REWRITE, np.var, np.std)
def _variance(w: LoopBuilder, call: Call) -> Expr:
    array, axis, _, _, ddof, keepdims, correction = arguments(
        w, call, "a", "axis", "dtype", "out", "ddof", "keepdims", "correction"
    )
    if not isinstance(array.type, Array):  # a number, as an array of one element
        array, keepdims = Call(np.array, (Tuple((array,)),), (), Array(_dtype(array.type), 1, "C", (True,))), None
    x = array if isinstance(array, Var) else w.materialize(array)
    dtype = _dtype(call.type)
    where = static(w, axis, "an axis")
    mean = w.fresh(
        "mean", _with_axis(Array(_dtype(x.type) if is_complex(x.type) else dtype, rank_of(x.type), "C"), where)
    )
    options: dict[str, Expr] = {} if where is None else {"axis": axis}
    FILL[np.mean](w, _call(np.mean, x, type_=mean.type, keepdims=Const(True), **options), mean)
    wide = Array(dtype, rank_of(x.type), "C")
    deviation: Expr = _call(operator.sub, x, mean, type_=replace(wide, dtype=_dtype(mean.type)))
    if is_complex(x.type):
        deviation = _call(np.absolute, deviation, type_=wide)
    squares = _call(np.square, deviation, type_=wide)
    if keepdims is not None:
        options["keepdims"] = keepdims
    given = ddof if correction is None else correction
    degrees = 0 if given is None else static(w, given, "ddof")
    if degrees == 0:
        result = _call(np.mean, squares, type_=call.type, **options)
    else:
        extents = lazy(w, x).extents
        axes = range(len(extents)) if where is None else [where] if isinstance(where, int) else where
        count: Expr = Const(1)
        for k in axes:
            count = _call(operator.mul, count, w.clamped(extents[k]), type_=Scalar("int64"))
        left = w.bind(_call(operator.sub, count, Const(degrees), type_=Scalar("int64")), "n")
        total = _call(np.sum, squares, type_=call.type, **options)
        result = _call(operator.truediv, total, left, type_=call.type)
    return result if call.func is np.var else _call(np.sqrt, result, type_=call.type)


@handles(REWRITE, *SURGERY)
def _same_value(w: LoopBuilder, call: Call) -> Expr:
    x = call.args[0]
    return _call(np.copy, x, type_=call.type) if isinstance(x.type, Array) else x


@handles(REWRITE, np.ptp)
def _ptp(w: LoopBuilder, call: Call) -> Expr:
    array, *rest = call.args
    x = w.materialize(array) if isinstance(array.type, Array) else w.bind(scalar(w, array))
    high = Call(np.max, (x, *rest), call.kwargs, call.type)
    low = Call(np.min, (x, *rest), call.kwargs, call.type)
    return _call(operator.sub, high, low, type_=call.type)


@handles(REWRITE, np.linalg.norm)
def _norm(w: LoopBuilder, call: Call) -> Expr:
    array, order, axis, keepdims = arguments(w, call, "x", "ord", "axis", "keepdims")
    kind = static(w, order, "ord")
    where = static(w, axis, "an axis")
    over_vectors = rank_of(array.type) == 1 or isinstance(where, int)
    options: dict[str, Expr] = {}
    if axis is not None and where is not None:
        options["axis"] = axis
    if keepdims is not None:
        options["keepdims"] = keepdims
    wide, type_ = array.type, call.type
    if kind is None or (kind == 2 and over_vectors) or (kind == "fro" and rank_of(array.type) == 2):
        lengths = Array(_dtype(type_), rank_of(wide), "C")
        size = _call(np.absolute, array, type_=lengths) if is_complex(array.type) else array
        squares = _call(np.square, size, type_=lengths)
        return _call(np.sqrt, _call(np.sum, squares, type_=type_, **options), type_=type_)
    size = _call(np.absolute, array, type_=Array(_dtype(type_), rank_of(wide), "C"))
    if over_vectors and kind == 1:
        return _call(np.sum, size, type_=type_, **options)
    if over_vectors and kind in (np.inf, -np.inf):
        return _call(np.max if kind > 0 else np.min, size, type_=type_, **options)
    raise w.unsupported(f"np.linalg.norm(ord={kind!r})")
