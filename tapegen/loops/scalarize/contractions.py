"""Contractions, products of vectors and matrices: BLAS where numba supports it, loops elsewhere."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Const, Expr, Load, Slice, Store, Var
from tapegen.ir.types import BOOL, Array, Scalar
from tapegen.loops.analysis.symbolic_bounds import Extent, Extents
from tapegen.loops.legalize import scalar_ops
from tapegen.loops.legalize.builder import ElementRule, Indices, LoopBuilder
from tapegen.loops.legalize.registry import FILL, LAZY, SCALAR, arguments, handles
from tapegen.loops.scalarize.broadcasting import broadcast
from tapegen.loops.scalarize.expressions import elementwise, lazy
from tapegen.loops.scalarize.loop_nests import allocate, counters_for, memory_order, nest
from tapegen.loops.scalarize.permutations import permuted, static
from tapegen.loops.scalarize.reductions import SUM, reduce_all
from tapegen.loops.scalarize.views import is_place

_BLAS = frozenset({"float64", "float32"})

_SMALL = 4
"""The longest axis of a small matrix."""


def _operands(w: LoopBuilder, call: Call) -> tuple[Any, Any]:
    if call.kwargs or len(call.args) != 2:
        raise w.unsupported(call.func, "with keywords")
    return call.args


def rank_of(expr: Expr) -> int:
    return expr.type.rank if isinstance(expr.type, Array) else 0


def _same_floats(a: Expr, b: Expr, type_: Any) -> bool:
    return a.type.dtype == b.type.dtype == type_.dtype and type_.dtype in _BLAS  # type: ignore[union-attr]


# ---- two vectors -----------------------------------------------------------------------------------------------------


@handles(SCALAR, np.dot, np.matmul, operator.matmul, np.inner, np.vdot)
def _inner(w: LoopBuilder, call: Call) -> Expr:
    a, b = _operands(w, call)
    assert isinstance(call.type, Scalar)
    if rank_of(a) != 1 or rank_of(b) != 1:
        raise w.unsupported(call.func, "of these ranks")
    if _same_floats(a, b, call.type) and _in_a_row(w, a) and _in_a_row(w, b):
        return Call(np.dot, (w.view_of(a), w.view_of(b)), (), call.type)
    x, y = lazy(w, a), lazy(w, b)
    _check_equal(w, x.extents[0], y.extents[0])
    type_ = call.type

    def at(index: Indices) -> Expr:
        return scalar_ops.operation(w, operator.mul, (x.at(index), y.at(index)), Scalar(type_.dtype, False))

    return reduce_all(w, SUM, ElementRule(x.extents, type_.dtype, at), type_.dtype)


def _in_a_row(w: LoopBuilder, expr: Expr) -> bool:
    """Whether a vector is known to be contiguous."""
    if isinstance(expr, Var):
        return w.layout(expr) == "C"
    if not isinstance(expr, Load) or w.layout(expr.array) != "C":
        return False
    index = expr.index
    if len(index) == rank_of(expr.array) - 1:
        return _all_integers(index)
    *front, last = index
    return len(index) == rank_of(expr.array) and _is_plain_slice(last) and _all_integers(front)


def _is_plain_slice(item: Any) -> bool:
    return isinstance(item, Slice) and item.step in (None, Const(1))


def _all_integers(items: Any) -> bool:
    return all(not isinstance(item, Slice) and isinstance(item.type, Scalar) for item in items)


def _check_equal(w: LoopBuilder, a: Extent, b: Extent) -> None:
    if not w.facts.equal(a.form, b.form):
        wrong = Call(operator.ne, (w.clamped(a), w.clamped(b)), (), BOOL)
        w.check(wrong, ValueError, "shapes are not aligned")


# ---- matrices --------------------------------------------------------------------------------------------------------


@handles(LAZY, np.dot)
def _scaled(w: LoopBuilder, call: Call) -> ElementRule:
    a, b = _operands(w, call)
    if rank_of(a) == 0 or rank_of(b) == 0:
        return elementwise(w, Call(operator.mul, (a, b), (), call.type))
    return w.array(w.materialize(call))


@handles(FILL, np.dot, np.matmul, operator.matmul, np.inner)
def _product(w: LoopBuilder, call: Call, target: Var) -> None:
    a, b = _operands(w, call)
    rank_a, rank_b = rank_of(a), rank_of(b)
    if rank_a == 0 or rank_b == 0:
        w.fill_new(target, _scaled(w, call))
        return
    if call.func is np.inner:
        x, y = lazy(w, a), lazy(w, b)
        y = permuted(y, (y.rank - 1, *range(y.rank - 1)))
    elif rank_a <= 2 and rank_b <= 2 and _same_floats(a, b, call.type):
        if w.loops:
            a, b = (each if is_place(each) else w.materialize(each) for each in (a, b))
            if (small := _of_small(w, lazy(w, a), lazy(w, b))) is not None:
                w.fill_new(target, small)
                return
        left, right = _for_blas(w, a), _for_blas(w, b)
        w.call_new(target, Call(np.dot, (left, right), (), call.type))
        if rank_a == 2:  # a product among the operands is not computed again
            rows = lazy(w, a if isinstance(a, Var) else left).extents[:1]
            columns = lazy(w, b if isinstance(b, Var) else right).extents[1:]
            w.facts.set_shape(target, (*rows, *columns))
        return
    else:
        x, y = lazy(w, a), lazy(w, b)
        if call.func is not np.dot and (x.rank > 2 or y.rank > 2):
            _stacked(w, x, y, target)
            return
        if y.rank > 1:
            y = permuted(y, (y.rank - 2, *range(y.rank - 2), y.rank - 1))
    letters = tuple(range(x.rank + y.rank - 1))
    contract(w, x, letters[: x.rank], y, letters[x.rank - 1 :], (*letters[: x.rank - 1], *letters[x.rank :]), target)


def _of_small(w: LoopBuilder, x: ElementRule, y: ElementRule) -> ElementRule | None:
    """A product of small matrices of known sizes as expressions: a call of BLAS takes longer than its arithmetic."""
    sizes = [w.facts.constant(extent.form) for extent in (*x.extents, *y.extents)]
    if not all(size is not None and 0 < size <= _SMALL for size in sizes) or sizes[x.rank - 1] != sizes[x.rank]:
        return None
    type_ = Scalar(x.dtype, False)
    count = sizes[x.rank]
    assert count is not None

    def at(index: Indices) -> Expr:
        row, column = index[: x.rank - 1], index[x.rank - 1 :]
        terms = [
            Call(operator.mul, (x.at((*row, Const(k))), y.at((Const(k), *column))), (), type_) for k in range(count)
        ]
        return functools.reduce(lambda total, term: Call(operator.add, (total, term), (), type_), terms)

    return ElementRule((*x.extents[:-1], *y.extents[1:]), x.dtype, at)


def _for_blas(w: LoopBuilder, expr: Expr) -> Expr:
    """An operand in C or Fortran order."""
    match expr:
        case Var():
            return expr if w.layout(expr) != "A" else w.copied(expr)
        case Call(intrinsics.transpose_view | np.transpose, (Var() as array,), ()) if w.layout(array) != "A":
            return Call(intrinsics.transpose_view, (array,), (), expr.type)
    whole = w.materialize(expr)
    return whole if w.layout(whole) != "A" else w.copied(whole)


def _stacked(w: LoopBuilder, x: ElementRule, y: ElementRule, target: Var) -> None:
    """`@` of stacks of matrices: leading axes broadcast."""
    core_x, core_y = x.extents[-2:], y.extents[-2:]
    vector_x, vector_y = x.rank == 1, y.rank == 1
    lead, (select_x, select_y) = broadcast(w, [x.extents[:-2], y.extents[:-2]])

    def wide(operand: ElementRule, core: Extents, select: Any) -> ElementRule:
        count = len(core)
        return ElementRule(
            (*lead, *core),
            operand.dtype,
            lambda index: operand.at((*select(index[: len(index) - count]), *index[len(index) - count :])),
        )

    x, y = wide(x, core_x, select_x), wide(y, core_y, select_y)
    batch = tuple(range(len(lead)))
    i, j, k = len(lead), len(lead) + 1, len(lead) + 2
    left = (*batch, k) if vector_x else (*batch, i, k)
    right = (*batch, k) if vector_y else (*batch, k, j)
    out = (*batch, *(() if vector_x else (i,)), *(() if vector_y else (j,)))
    contract(w, x, left, y, right, out, target)


Letters = tuple[int, ...]


def contract(
    w: LoopBuilder, x: ElementRule, x_letters: Letters, y: ElementRule, y_letters: Letters, out: Letters, target: Var
) -> None:
    """`target[out] = sum of x[x_letters] * y[y_letters]`, as in np.einsum with integers for letters."""
    sizes: dict[int, Extent] = {}
    for letter, extent in (*zip(x_letters, x.extents, strict=True), *zip(y_letters, y.extents, strict=True)):
        if letter in sizes:
            _check_equal(w, sizes[letter], extent)
        sizes.setdefault(letter, extent)
    assert isinstance(target.type, Array)
    dtype = target.type.dtype
    extents = tuple(sizes[letter] for letter in out)
    letters = (*out, *(letter for letter in sizes if letter not in out))
    whole = tuple(sizes[letter] for letter in letters)
    index = counters_for(w, whole)
    at = dict(zip(letters, index, strict=True))
    with w.block() as body:
        factors = (x.at(tuple(at[k] for k in x_letters)), y.at(tuple(at[k] for k in y_letters)))
        element = scalar_ops.operation(w, operator.mul, factors, Scalar(dtype, False))
        w.emit(Store(target, tuple(at[k] for k in out), element, True, w.origin))
    allocate(w, target, extents, np.zeros)
    nest(w, whole, index, body, memory_order(w, body, [i for i in index if isinstance(i, Var)]))


@handles(FILL, np.tensordot)
def _tensordot(w: LoopBuilder, call: Call, target: Var) -> None:
    a, b, axes = arguments(w, call, "a", "b", "axes")
    x, y = lazy(w, a), lazy(w, b)
    given = 2 if axes is None else static(w, axes, "axes")
    if isinstance(given, int):
        left, right = tuple(range(x.rank - given, x.rank)), tuple(range(given))
    else:
        left, right = (
            tuple(k % rank for k in (part if isinstance(part, (tuple, list)) else (part,)))
            for part, rank in zip(given, (x.rank, y.rank), strict=True)
        )
    x_letters = tuple(range(x.rank))
    y_letters = tuple(left[right.index(k)] if k in right else x.rank + k for k in range(y.rank))
    out = tuple(k for k in x_letters if k not in left) + tuple(k for k in y_letters if k >= x.rank)
    contract(w, x, x_letters, y, y_letters, out, target)


@handles(FILL, np.einsum)
def _einsum(w: LoopBuilder, call: Call, target: Var) -> None:
    spec = static(w, call.args[0], "the subscripts of np.einsum")
    operands = call.args[1:]
    if not isinstance(spec, str) or "..." in spec or call.kwargs or len(operands) != 2:
        raise w.unsupported("np.einsum of this form")
    inputs, _, output = spec.replace(" ", "").partition("->")
    left, right = inputs.split(",")
    if "->" not in spec:
        output = "".join(sorted(c for c in set(left + right) if (left + right).count(c) == 1))
    x, y = (lazy(w, operand) for operand in operands)
    contract(w, x, tuple(map(ord, left)), y, tuple(map(ord, right)), tuple(map(ord, output)), target)
