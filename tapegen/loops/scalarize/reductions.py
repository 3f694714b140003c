"""Reductions and scans as loops."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen.ir import intrinsics
from tapegen.ir.affine import plus, times
from tapegen.ir.nodes import Assign, Call, Const, Expr, If, Load, Stmt, Store, Tuple, Var
from tapegen.ir.types import BOOL, INT, NARROW_INTEGERS, Array, Scalar
from tapegen.loops.analysis.symbolic_bounds import UNIT, Extent, Extents
from tapegen.loops.legalize import precision
from tapegen.loops.legalize.builder import ElementRule, Indices, LoopBuilder
from tapegen.loops.legalize.registry import FILL, LAZY, SCALAR, arguments, handles
from tapegen.loops.scalarize.broadcasting import assumed_equal, fit, same_part, scaled, unless_one
from tapegen.loops.scalarize.expressions import lazy, product, scalar
from tapegen.loops.scalarize.index_functions import diagonal
from tapegen.loops.scalarize.loop_nests import allocate, counters_for, fill, memory_order, nest
from tapegen.loops.scalarize.permutations import axes_of, axis_of, flattened, static


@dataclass(frozen=True)
class Reduction:
    """How elements are combined.

    Attributes
    ----------
    start : callable
        dtype -> the initial value.
    join : callable
        (accumulator, element, dtype) -> a condition for replacing the accumulator (None: always), and the new value.
    mean : bool
        Whether the result is divided by the number of elements.
    empty : bool
        Whether the result of no elements is defined.
    """

    start: Callable[[str], Expr]
    join: Callable[[Expr, Expr, str], tuple[Expr | None, Expr]]
    mean: bool = False
    empty: bool = True


def _sum(total: Expr, element: Expr, dtype: str) -> tuple[Expr | None, Expr]:
    return None, Call(operator.add, (total, element), (), Scalar(dtype, False))


def _product(total: Expr, element: Expr, dtype: str) -> tuple[Expr | None, Expr]:
    return None, Call(operator.mul, (total, element), (), Scalar(dtype, False))


def _larger(best: Expr, element: Expr, dtype: str) -> tuple[Expr | None, Expr]:
    return _or_nan(Call(operator.gt, (element, best), (), BOOL), element, dtype), element


def _smaller(best: Expr, element: Expr, dtype: str) -> tuple[Expr | None, Expr]:
    return _or_nan(Call(operator.lt, (element, best), (), BOOL), element, dtype), element


def _or_nan(test: Expr, element: Expr, dtype: str) -> Expr:
    if not dtype.startswith("float"):
        return test
    return Call(intrinsics.or_, (test, Call(operator.ne, (element, element), (), BOOL)), (), BOOL)


def _any(found: Expr, element: Expr, dtype: str) -> tuple[Expr | None, Expr]:
    return precision.convert(element, "bool"), Const(True)


def _all(found: Expr, element: Expr, dtype: str) -> tuple[Expr | None, Expr]:
    return Call(operator.not_, (precision.convert(element, "bool"),), (), BOOL), Const(False)


def _number(value: float) -> Callable[[str], Expr]:
    return lambda dtype: precision.convert(Const(value), dtype)


def _limit(sign: int) -> Callable[[str], Expr]:
    """The value below (above) all others."""

    def start(dtype: str) -> Expr:
        if dtype.startswith("float"):
            return precision.convert(Const(sign * math.inf), dtype)
        if dtype == "bool":
            return Const(sign > 0)
        info = np.iinfo(dtype)
        return precision.convert(Const(int(info.max if sign > 0 else info.min)), dtype)

    return start


SUM = Reduction(_number(0), _sum)
MEAN = Reduction(_number(0), _sum, mean=True)
PROD = Reduction(_number(1), _product)
MAX = Reduction(_limit(-1), _larger, empty=False)
MIN = Reduction(_limit(1), _smaller, empty=False)
ANY = Reduction(lambda dtype: Const(False), _any)
ALL = Reduction(lambda dtype: Const(True), _all)

REDUCTIONS: dict[Any, Reduction] = {
    np.sum: SUM,
    builtins.sum: SUM,
    np.mean: MEAN,
    np.prod: PROD,
    math.prod: PROD,
    **dict.fromkeys((np.max, np.amax), MAX),
    **dict.fromkeys((np.min, np.amin), MIN),
    **dict.fromkeys((np.any, builtins.any), ANY),
    **dict.fromkeys((np.all, builtins.all), ALL),
}


# ---- the loops -------------------------------------------------------------------------------------------------------


def reduce_all(w: LoopBuilder, how: Reduction, x: ElementRule, dtype: str, target: Var | None = None) -> Expr:
    """All elements combined."""
    how = _of_dtype(how, dtype)
    _check_empty(w, how, x, tuple(range(x.rank)))
    wide = _accumulator(how, dtype)
    base = target.name if target is not None else "total"
    total = target if target is not None and wide == dtype else w.fresh(base, Scalar(wide, False))
    index = counters_for(w, x.extents)
    with w.block() as body:
        element = precision.convert(x.at(index), _element_dtype(how, wide, x.dtype))
        _join_number(w, how, total, element, wide)
    w.forget([total])
    w.emit(Assign((total,), how.start(wide), w.origin))
    nest(w, x.extents, index, body, memory_order(w, body, [i for i in index if isinstance(i, Var)]))
    return _finished(how, total, product(tuple(w.clamped(extent) for extent in x.extents)), dtype)


def reduce_axes(
    w: LoopBuilder, how: Reduction, x: ElementRule, axes: tuple[int, ...], keepdims: bool, target: Var
) -> None:
    """`target` = the elements combined along some axes, each in the order of memory."""
    assert isinstance(target.type, Array)
    dtype = target.type.dtype
    how = _of_dtype(how, dtype)
    _check_empty(w, how, x, axes)
    count = product(tuple(w.clamped(x.extents[k]) for k in axes))
    if how.mean:
        count = w.bind(count, "n")
    extents = tuple(UNIT if k in axes else extent for k, extent in enumerate(x.extents) if keepdims or k not in axes)
    index = counters_for(w, x.extents)
    with w.block() as body:
        element = x.at(index)
    counters = [i for i in index if isinstance(i, Var)]
    with w.block() as probe:
        w.emit(*body, Assign((Var("?", Scalar(dtype, False)),), element))
    order = memory_order(w, probe, counters)
    result_index = tuple(Const(0) if k in axes else i for k, i in enumerate(index) if keepdims or k not in axes)
    reduced = [c for c in order if c in {index[k] for k in axes}]
    outer = [c for c in order if c not in reduced]
    place = Load(target, result_index, Scalar(dtype, False))
    wide = _accumulator(how, dtype)
    if order == [*outer, *reduced] or not outer or (order[-1] in reduced and wide != dtype):
        allocate(w, target, extents)
        total = w.fresh("total", Scalar(wide, False))
        with w.block() as inner:
            w.emit(*body)
            _join_number(w, how, total, precision.convert(element, _element_dtype(how, wide, x.dtype)), wide)
        with w.block() as iteration:
            w.emit(Assign((total,), how.start(wide), w.origin))
            nest(w, x.extents, index, inner, reduced)
            w.emit(Store(target, result_index, _finished(how, total, count, dtype), False, w.origin))
        nest(w, x.extents, index, iteration, outer)
        return
    allocate_constant(w, target, extents, how.start(dtype))
    depth = max(order.index(c) for c in outer) + 1  # of the loops around the last axis that is kept
    with w.block() as inner:
        w.emit(*body)
        element = precision.convert(element, _element_dtype(how, dtype, x.dtype))
        if depth == len(order):
            _join_place(w, how, place, element, dtype)
        else:
            total = w.fresh("total", Scalar(dtype, False))
            _join_number(w, how, total, element, dtype)
    if depth < len(order):
        with w.block() as iteration:
            w.emit(Assign((total,), place, w.origin))
            nest(w, x.extents, index, inner, order[depth:])
            w.emit(Store(target, result_index, total, False, w.origin))
        inner = iteration
    nest(w, x.extents, index, inner, order[:depth])
    if how.mean:
        with w.block() as last:
            w.emit(Store(target, result_index, _finished(how, place, count, dtype), False, w.origin))
        nest(w, x.extents, index, last, outer)


def allocate_constant(w: LoopBuilder, target: Var, extents: Extents, value: Expr) -> None:
    """`target` = a new array of equal elements."""
    if value in (Const(0.0), Const(0), Const(False)) or value == Const(np.float32(0.0)):
        allocate(w, target, extents, np.zeros)
        return
    allocate(w, target, extents)
    fill(w, w.array(target), ElementRule(extents, precision.dtype_of(value), lambda index: value), fresh=True)


def _join_number(w: LoopBuilder, how: Reduction, total: Var, element: Expr, dtype: str) -> None:
    if how.join is not _sum and how.join is not _product:
        element = w.bind(element, "x")
    test, value = how.join(total, element, dtype)
    w.emit(_guarded(test, Assign((total,), value, w.origin)))


def _join_place(w: LoopBuilder, how: Reduction, place: Load, element: Expr, dtype: str) -> None:
    if how.join is _sum:
        w.emit(Store(place.array, place.index, element, True, w.origin))
        return
    if how.join is not _product:
        element = w.bind(element, "x")
    test, value = how.join(place, element, dtype)
    w.emit(_guarded(test, Store(place.array, place.index, value, False, w.origin)))


def _guarded(test: Expr | None, stmt: Stmt) -> Stmt:
    return stmt if test is None else If(test, (stmt,), (), stmt.origin)


def _of_dtype(how: Reduction, dtype: str) -> Reduction:
    """The reduction; sums of bools are disjunctions, and products are conjunctions."""
    return {SUM: ANY, PROD: ALL}.get(how, how) if dtype == "bool" else how


def _accumulator(how: Reduction, dtype: str) -> str:
    """Single precision is summed in double precision: as accurate as NumPy's pairwise sums.

    Compiled code computes narrow integers in 64 bits, whatever the type of a variable says.
    """
    if how.join not in (_sum, _product):
        return dtype
    return "float64" if dtype == "float32" else "int64" if dtype in NARROW_INTEGERS - {"uint64"} else dtype


def _element_dtype(how: Reduction, wide: str, dtype: str) -> str:
    if how.join in (_any, _all) or (dtype == "float32" and wide == "float64"):
        return dtype
    return wide


def _finished(how: Reduction, total: Expr, count: Expr, dtype: str) -> Expr:
    if how.mean:
        total = Call(operator.truediv, (total, count), (), Scalar(precision.dtype_of(total), False))
    return precision.convert(total, dtype)


def _check_empty(w: LoopBuilder, how: Reduction, x: ElementRule, axes: tuple[int, ...]) -> None:
    if how.empty:
        return
    for k in axes:
        extent = x.extents[k]
        if not w.facts.nonnegative(extent.form - 1):
            w.check(
                Call(operator.lt, (extent.size, Const(1)), (), BOOL),
                ValueError,
                "zero-size array to reduction operation which has no identity",
            )


# ---- calls -----------------------------------------------------------------------------------------------------------


def _operands(w: LoopBuilder, call: Call) -> tuple[Reduction, ElementRule, tuple[int, ...], bool]:
    how = REDUCTIONS[call.func]
    if call.func in (builtins.sum, builtins.any, builtins.all, math.prod):
        array, axis, keepdims, where = call.args[0], None, None, None
        if len(call.args) > 1 or call.kwargs:
            raise w.unsupported(call.func, "with a start value")
    elif how in (SUM, MEAN, PROD):
        array, axis, _, out, keepdims, initial, where = arguments(
            w, call, "a", "axis", "dtype", "out", "keepdims", "initial", "where"
        )
        if out is not None or initial is not None:
            raise w.unsupported(call.func, "with out= or initial=")
    else:
        array, axis, out, keepdims, initial, where = arguments(
            w, call, "a", "axis", "out", "keepdims", "initial", "where"
        )
        if out is not None or initial is not None:
            raise w.unsupported(call.func, "with out= or initial=")
    x = lazy(w, array)
    if where is not None:
        if how.mean:
            raise w.unsupported("np.mean with where=")
        x = _masked(x, fit(w, lazy(w, where), x.extents), how)
    return how, x, axes_of(w, axis, x.rank), bool(static(w, keepdims, "keepdims"))


def _masked(x: ElementRule, where: ElementRule, how: Reduction) -> ElementRule:
    neutral = how.start(x.dtype)
    type_ = Scalar(x.dtype, False)
    return ElementRule(
        x.extents, x.dtype, lambda index: Call(intrinsics.ifelse, (where.at(index), x.at(index), neutral), (), type_)
    )


@handles(SCALAR, *REDUCTIONS)
def _to_number(w: LoopBuilder, call: Call) -> Expr:
    return number_into(w, call, None)


def number_into(w: LoopBuilder, call: Call, target: Var | None) -> Expr:
    """A reduction to a scalar, accumulated in `target` if there is one."""
    how, x, _, _ = _operands(w, call)
    assert isinstance(call.type, Scalar)
    return reduce_all(w, how, x, call.type.dtype, target)


@handles(FILL, *(func for func in REDUCTIONS if func not in (builtins.sum, builtins.any, builtins.all, math.prod)))
def _to_array(w: LoopBuilder, call: Call, target: Var) -> None:
    how, x, axes, keepdims = _operands(w, call)
    reduce_axes(w, how, x, axes, keepdims, target)


@handles(SCALAR, np.count_nonzero)
def _count_nonzero(w: LoopBuilder, call: Call) -> Expr:
    x = lazy(w, call.args[0])
    truth = ElementRule(x.extents, "bool", lambda index: precision.convert(x.at(index), "bool"))
    return reduce_all(w, SUM, truth, "int64")


@handles(SCALAR, np.trace)
def _trace(w: LoopBuilder, call: Call) -> Expr:
    array, offset, axis1, axis2 = arguments(w, call, "a", "offset", "axis1", "axis2")
    x = lazy(w, array)
    if x.rank != 2 or axis1 is not None or axis2 is not None:
        raise w.unsupported("np.trace of a stack of matrices")
    assert isinstance(call.type, Scalar)
    return reduce_all(
        w, SUM, diagonal(w, x, w.bind(scalar(w, offset)) if offset is not None else Const(0), 0, 1), call.type.dtype
    )


# ---- sums over broadcast axes ----------------------------------------------------------------------------------------


@handles(LAZY, intrinsics.sum_to)
def _sum_to_lazy(w: LoopBuilder, call: Call) -> ElementRule:
    x, like = lazy(w, call.args[0]), _extents_of(w, call.args[1])
    if x.rank == len(like) and all(_same_size(w, a, b) for a, b in zip(x.extents, like, strict=True)):
        return x
    return w.array(w.materialize(call))


def _extents_of(w: LoopBuilder, like: Expr) -> Extents:
    """The extents of an array that is not read: `np.empty(shape)` is not allocated."""
    match like:
        case Call(np.empty, (shape,)):
            return tuple(_unclamped(w, size) for size in (shape.items if isinstance(shape, Tuple) else (shape,)))
    return lazy(w, like).extents


def _unclamped(w: LoopBuilder, size: Expr) -> Extent:
    """The extent of a size expression, `n - 2` for `max(n - 2, 0)`."""
    match size:
        case Call(builtins.max, (part, Const(0))):
            return w.extent(part)
    return w.extent(scalar(w, size))


def _same_size(w: LoopBuilder, whole: Extent, part: Extent) -> bool:
    """Whether the forward sweep broadcast nothing along an axis; where its sizes had to be equal, they are compared."""
    return not part.is_unit and (
        w.facts.equal(whole.form, part.form)
        or same_part(w, part, whole)
        or w.facts.is_never_one(part.form)
        or assumed_equal(w, part, whole)
    )


@handles(SCALAR, intrinsics.sum_to)
def _sum_to_number(w: LoopBuilder, call: Call) -> Expr:
    assert isinstance(call.type, Scalar)
    return reduce_all(w, SUM, lazy(w, call.args[0]), call.type.dtype)


@handles(FILL, intrinsics.sum_to)
def _sum_to(w: LoopBuilder, call: Call, target: Var) -> None:
    x, like = lazy(w, call.args[0]), _extents_of(w, call.args[1])
    assert isinstance(target.type, Array)
    lead = x.rank - len(like)
    factors: list[Expr | int] = []
    for whole, part in zip(x.extents[lead:], like, strict=True):
        if part.is_unit:
            factors.append(0)
        elif _same_size(w, whole, part):
            factors.append(1)
        else:
            factors.append(unless_one(w, part))
    if all(factor in (0, 1) for factor in factors):
        axes = (*range(lead), *(lead + k for k, factor in enumerate(factors) if factor == 0))
        if lead:
            result_index = tuple(k for k in range(x.rank) if k not in axes)
            if len(result_index) == len(like):
                reduce_axes(w, SUM, x, axes, False, target)
                return
        elif not axes:
            w.fill_new(target, x)
            return
        elif not lead:
            reduce_axes(w, SUM, x, axes, True, target)
            return
    allocate(w, target, like, np.zeros)
    index = counters_for(w, x.extents)
    with w.block() as body:
        where = tuple(scaled(i, factor) for i, factor in zip(index[lead:], factors, strict=True))
        w.emit(Store(target, where, x.at(index), True, w.origin))
    nest(w, x.extents, index, body, memory_order(w, body, [i for i in index if isinstance(i, Var)]))


# ---- positions -------------------------------------------------------------------------------------------------------


@handles(SCALAR, np.argmax, np.argmin)
def _position(w: LoopBuilder, call: Call) -> Expr:
    x = lazy(w, call.args[0])
    best, where = w.fresh("best", Scalar(x.dtype, False)), w.fresh("where", INT)
    _check_empty(w, MAX, x, tuple(range(x.rank)))
    index = counters_for(w, x.extents)
    flat: Expr = Const(0)
    for i, extent in zip(index, x.extents, strict=True):
        flat = plus(times(flat, extent.size), i)
    w.emit(*_search_start(w, call.func, best, where))
    with w.block() as body:
        _search(w, call.func, best, where, x.at(index), flat)
    nest(w, x.extents, index, body)
    return where


@handles(FILL, np.argmax, np.argmin)
def _positions(w: LoopBuilder, call: Call, target: Var) -> None:
    array, axis, _, keepdims = arguments(w, call, "a", "axis", "out", "keepdims")
    x = lazy(w, array)
    keep = bool(static(w, keepdims, "keepdims"))
    if len(axes_of(w, axis, x.rank)) != 1:  # of all elements, with keepdims
        place = _position(w, call)
        allocate(w, target, (UNIT,) * x.rank)
        w.emit(Store(target, (Const(0),) * x.rank, place, False, w.origin))
        return
    along = axis_of(w, axis, x.rank)
    _check_empty(w, MAX, x, (along,))
    best, where = w.fresh("best", Scalar(x.dtype, False)), w.fresh("where", INT)
    index = counters_for(w, x.extents)
    allocate(w, target, tuple(UNIT if k == along else e for k, e in enumerate(x.extents) if keep or k != along))
    result_index = tuple(Const(0) if k == along else i for k, i in enumerate(index) if keep or k != along)
    with w.block() as inner:
        _search(w, call.func, best, where, x.at(index), index[along])
    with w.block() as iteration:
        w.emit(*_search_start(w, call.func, best, where))
        nest(w, x.extents, index, inner, [i for i in index[along : along + 1] if isinstance(i, Var)])
        w.emit(Store(target, result_index, where, False, w.origin))
    nest(w, x.extents, index, iteration, [i for k, i in enumerate(index) if k != along and isinstance(i, Var)])


def _search_start(w: LoopBuilder, func: Any, best: Var, where: Var) -> list[Stmt]:
    limit = _limit(-1 if func is np.argmax else 1)(precision.dtype_of(best))
    return [Assign((best,), limit, w.origin), Assign((where,), Const(0), w.origin)]


def _search(w: LoopBuilder, func: Any, best: Var, where: Var, element: Expr, position: Expr) -> None:
    """The first of the largest (smallest) elements; the first NaN before all others."""
    element = w.bind(element, "x")
    test: Expr = Call(operator.gt if func is np.argmax else operator.lt, (element, best), (), BOOL)
    if precision.dtype_of(best).startswith("float"):
        is_nan = Call(operator.ne, (element, element), (), BOOL)
        first = Call(operator.eq, (best, best), (), BOOL)
        test = Call(intrinsics.or_, (test, Call(intrinsics.and_, (is_nan, first), (), BOOL)), (), BOOL)
    w.emit(
        If(
            test,
            (Assign((best,), element, w.origin), Assign((where,), position, w.origin)),
            (),
            w.origin,
        )
    )


# ---- scans -----------------------------------------------------------------------------------------------------------


@handles(FILL, np.cumsum, np.cumprod)
def _scan(w: LoopBuilder, call: Call, target: Var) -> None:
    array, axis, _ = arguments(w, call, "a", "axis", "dtype")
    x = lazy(w, array)
    assert isinstance(target.type, Array)
    dtype = target.type.dtype
    func = operator.add if call.func is np.cumsum else operator.mul
    type_ = Scalar(dtype, False)
    if x.rank == 0:
        raise w.unsupported(call.func, "of a number")
    if axis is None and x.rank != 1:
        w.assign_array(target, Call(call.func, (flattened(w, array),), (), call.type))
        return
    along = axis_of(w, axis, x.rank)
    if x.rank == 1:
        total = w.fresh("total", type_)
        index = counters_for(w, x.extents)
        with w.block() as body:
            element = precision.convert(x.at(index), dtype)
            w.emit(Assign((total,), Call(func, (total, element), (), type_), w.origin))
            w.emit(Store(target, index, total, False, w.origin))
        allocate(w, target, x.extents)
        w.emit(Assign((total,), precision.convert(Const(0 if func is operator.add else 1), dtype), w.origin))
        nest(w, x.extents, index, body)
        return
    allocate(w, target, x.extents)
    out = w.array(target)
    _along(w, out, x, along, lambda first, _: first, 0)
    _along(w, out, x, along, lambda element, before: Call(func, (before, element), (), type_), 1)


def _along(
    w: LoopBuilder, out: ElementRule, x: ElementRule, along: int, join: Callable[[Expr, Expr], Expr], start: int
) -> None:
    """The first slice of a scan, or the others, each computed from the previous one."""
    extent = x.extents[along]
    rest = w.extent(plus(extent.size, -1)) if start else w.extent(Call(min, (extent.size, Const(1)), (), INT))
    extents = (*x.extents[:along], rest, *x.extents[along + 1 :])

    def moved(index: Indices, by: int) -> Indices:
        return (*index[:along], plus(index[along], by), *index[along + 1 :])

    def at(index: Indices) -> Expr:
        element = precision.convert(x.at(moved(index, start)), out.dtype)
        return join(element, out.at(moved(index, 0)))

    fill(
        w,
        ElementRule(extents, out.dtype, lambda index: out.at(moved(index, start))),
        ElementRule(extents, out.dtype, at),
        fresh=True,
    )
