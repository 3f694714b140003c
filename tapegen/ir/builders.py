"""Smart constructors: IR expressions with local algebraic simplification."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Const, Expr, Load, Slice, Tuple, Var
from tapegen.ir.types import BOOL, INT, Array, ListOf, Scalar, Type, is_complex, is_floating


def call(func: Callable[..., Any], *args: Expr, type_: Type, **kwargs: Expr) -> Call:
    return Call(func, args, tuple(kwargs.items()), type_)


def is_const(expr: Expr, value: float) -> bool:
    return isinstance(expr, Const) and isinstance(expr.value, (int, float)) and expr.value == value


def floating(value: float, dtype: str) -> Const:
    """A constant of a floating dtype: to numba, Python's floats are float64."""
    if dtype == "float32":
        with np.errstate(over="ignore"):
            return Const(np.float32(value))
    return Const(float(value))


def new_array(make: Callable[..., Any], sizes: Sequence[Expr], type_: Any) -> Call:
    """An array of zeros, or without contents."""
    shape: Expr = sizes[0] if len(sizes) == 1 else Tuple(tuple(sizes))
    dtype = () if type_.dtype == "float64" else (Const(getattr(np, "bool_" if type_.dtype == "bool" else type_.dtype)),)
    return Call(make, (shape, *dtype), (), type_)


@functools.cache
def broadcast_type(a: Type, b: Type) -> Type:
    """The type of an element-wise operation on two floating operands."""
    dtype = np.result_type(_prototype(a), _prototype(b)).name
    rank_a, rank_b = rank_of(a), rank_of(b)
    if max(rank_a, rank_b) == 0:
        python = isinstance(a, Scalar) and isinstance(b, Scalar) and a.python and b.python
        return Scalar(dtype, python)
    return Array(dtype, max(rank_a, rank_b), "A")


def _prototype(type_: Type) -> Any:
    if isinstance(type_, Scalar) and type_.python:
        return {"float64": 1.0, "int64": 1, "bool": True}.get(type_.dtype, 1j)
    return np.dtype(type_.dtype)  # type: ignore[union-attr]


def rank_of(type_: Type) -> int:
    return type_.rank if isinstance(type_, Array) else 0


def neg(a: Expr) -> Expr:
    match a:
        case Const(value) if isinstance(value, (int, float)):
            return Const(-value)
        case Call(operator.neg, (inner,)):
            return inner
        case Call(operator.mul, (Const(value), right)) if isinstance(value, (int, float)):
            return Call(operator.mul, (Const(-value), right), (), a.type)
        case Call(operator.mul, (left, right)) if isinstance(left, Call) and left.func is operator.neg:
            return Call(operator.mul, (left.args[0], right), (), a.type)
    return Call(operator.neg, (a,), (), a.type)


def without_minus(a: Expr) -> Expr | None:
    """`x` for `-x`, `2.0 * x` for `-2.0 * x`; None without a leading minus.  The magnitude is the same number."""
    if not isinstance(a, Call):
        return None
    if a.func is operator.neg:
        return a.args[0]
    if a.func is operator.mul or a.func is operator.truediv:
        left, right = a.args
        if isinstance(left, Const) and a.func is operator.mul and isinstance(left.value, (int, float)):
            if left.value < 0:
                return right if left.value == -1 else Call(operator.mul, (Const(-left.value), right), (), a.type)
        elif (positive := without_minus(left)) is not None:
            return Call(a.func, (positive, right), (), a.type)
    return None


def not_(test: Expr) -> Expr:
    """`not test`, with the comparison negated where that is equivalent (for floats only `==` and `!=`)."""
    match test:
        case Call(operator.not_, (inner,)) if inner.type == BOOL:
            return inner
        case Call(operator.eq | operator.ne, (a, b)) if _are_scalars(a, b):
            return Call(operator.ne if test.func is operator.eq else operator.eq, (a, b), (), BOOL)
        case Call(func, (a, b)) if func in _OPPOSITE and _are_scalars(a, b) and a.type == b.type == INT:
            return Call(_OPPOSITE[func], (a, b), (), BOOL)
    return Call(operator.not_, (test,), (), BOOL)


_OPPOSITE: dict[Any, Any] = {
    operator.lt: operator.ge,
    operator.ge: operator.lt,
    operator.gt: operator.le,
    operator.le: operator.gt,
}


def _are_scalars(*operands: Expr) -> bool:
    return all(isinstance(operand.type, Scalar) for operand in operands)


def add(a: Expr, b: Expr) -> Expr:
    if is_const(a, 0.0) and rank_of(b.type) >= rank_of(a.type):
        return b
    if is_const(b, 0.0) and rank_of(a.type) >= rank_of(b.type):
        return a
    if a == b:
        return mul(Const(2.0), a)
    type_ = broadcast_type(a.type, b.type)
    if isinstance(a, Call) and a.func is operator.neg and not (isinstance(b, Call) and b.func is operator.neg):
        return Call(operator.sub, (b, a.args[0]), (), type_)
    match b:
        case Call(operator.neg, (inner,)):
            return Call(operator.sub, (a, inner), (), type_)
        case Call(operator.mul, (Const(value), right)) if isinstance(value, (int, float)) and value < 0:
            return Call(operator.sub, (a, mul(Const(-value), right)), (), type_)
    return Call(operator.add, (a, b), (), type_)


def sub(a: Expr, b: Expr) -> Expr:
    if is_const(b, 0.0):
        return a
    return Call(operator.sub, (a, b), (), broadcast_type(a.type, b.type))


def mul(a: Expr, b: Expr) -> Expr:
    """`a * b` with units, signs and zeros folded; constant factors come first."""
    if is_const(a, 1.0):
        return b
    if is_const(b, 1.0):
        return a
    if is_const(a, -1.0):
        return neg(b)
    if is_const(b, -1.0):
        return neg(a)
    if isinstance(b, Const) and not isinstance(a, Const):
        a, b = b, a
    if isinstance(a, Call) and a.func is operator.truediv and is_const(a.args[0], 1.0):
        return Call(operator.truediv, (b, a.args[1]), (), broadcast_type(a.type, b.type))
    match a, b:
        case Const(x), Const(y) if isinstance(x, (int, float)) and isinstance(y, (int, float)):
            return Const(x * y)
        case Const(x), Call(operator.mul, (left, right)) if is_exact(x) or (
            isinstance(left, Const) and is_exact(left.value)
        ):
            return mul(mul(a, left), right)
        case _, Call(operator.neg, (inner,)):
            return neg(mul(a, inner))
        case Call(operator.neg, (inner,)), _:
            return neg(mul(inner, b))
    return Call(operator.mul, (a, b), (), broadcast_type(a.type, b.type))


def is_exact(number: object) -> bool:
    """Whether products with a constant are exact, so that they are associative: powers of two such as `2.0`, `-0.5`."""
    return isinstance(number, (int, float)) and abs(math.frexp(number)[0]) == 0.5


def strong_mul(cotangent: Expr, partial: Expr) -> Expr:
    """Strong-zero product: `cotangent * partial`, where a zero cotangent wins over a partial that is not finite."""
    if isinstance(partial, Const):
        return mul(cotangent, partial)
    return Call(intrinsics.strong_mul, (cotangent, partial), (), broadcast_type(cotangent.type, partial.type))


def or_all(flags: Sequence[Expr]) -> Expr:
    """`a or b or ...`."""
    result = flags[0]
    for flag in flags[1:]:
        result = Call(intrinsics.or_, (result, flag), (), BOOL)
    return result


def as_factor(partial: Expr) -> tuple[Any, Expr]:
    """Multiply by a partial: a factor `1.0 / y` becomes a division by `y`, others a product."""
    match partial:
        case Call(operator.truediv | np.divide as divide, (Const(1.0), divisor)):
            return divide, divisor
    return operator.mul, partial


def guarded(product: Expr, tests: Sequence[Expr]) -> Expr:
    """`product` where one of the tests is not zero, 0 elsewhere."""
    used = is_used(tests)
    type_ = broadcast_type(product.type, used.type) if rank_of(used.type) > rank_of(product.type) else product.type
    return Call(intrinsics.guarded, (product, used), (), type_)


def is_guarded(expr: Expr) -> bool:
    """Whether an expression is a product that is not computed where a cotangent is zero."""
    return isinstance(expr, Call) and expr.func in (intrinsics.guarded, intrinsics.strong_mul)


def is_used(tests: Sequence[Expr]) -> Expr:
    """Element-wise test whether one of these is not zero."""
    used: Expr | None = None
    for test in tests:
        type_ = Array("bool", test.type.rank, "C") if isinstance(test.type, Array) else BOOL
        one = Call(operator.ne, (test, Const(0.0)), (), type_)
        if used is None:
            used = one
        elif rank_of(used.type) or rank_of(one.type):
            rank = max(rank_of(used.type), rank_of(one.type))
            used = Call(operator.or_, (used, one), (), Array("bool", rank, "C"))
        else:
            used = Call(intrinsics.or_, (used, one), (), BOOL)
    assert used is not None
    return used


def add_all(terms: Iterable[Expr]) -> Expr:
    """The sum of terms; adjacent equal terms become one multiple."""
    total: Expr | None = None
    for term, equal in itertools.groupby(terms):
        count = len(list(equal))
        whole = term if count == 1 else mul(Const(float(count)), term)
        total = whole if total is None else add(total, whole)
    if total is None:
        raise AssertionError("no terms")
    return total


def copy(a: Expr) -> Call:
    type_ = a.type
    if isinstance(type_, Array):
        type_ = Array(type_.dtype, type_.rank, "C", type_.unit)
    return Call(np.copy, (a,), (), type_)


def cast(expr: Expr, dtype: str) -> Expr:
    """`expr` converted to a dtype when it has another one."""
    type_ = expr.type
    if is_complex(type_) and np.dtype(dtype).kind != "c":
        expr = real_part(expr)
        type_ = expr.type
    if not is_floating(type_) or isinstance(expr, Const):
        return expr
    if isinstance(type_, Scalar):
        if type_.dtype == dtype:
            return expr
        return Call(getattr(np, dtype), (expr,), (), Scalar(dtype, False))
    if isinstance(type_, Array) and type_.dtype != dtype:
        return Call(np.astype, (expr, Const(getattr(np, dtype))), (), Array(dtype, type_.rank, "C", type_.unit))
    return expr


def fitted(expr: Expr, type_: Array | Scalar) -> Expr:
    """`expr` converted to a location or scalar of this type."""
    return cast(number(expr) if isinstance(type_, Scalar) else expr, type_.dtype)


def number(expr: Expr) -> Expr:
    """The scalar in a zero-dimensional array: updating the array in place would be seen through all aliases."""
    if not isinstance(expr.type, Array):
        return expr
    match expr:
        case Call(np.broadcast_to, (held, *_)) | Call(np.full_like, (_, held)) if rank_of(held.type) == 0:
            return number(held)
        case Call(np.where, (test, a, b), ()) if isinstance(test.type, Scalar):
            a, b = number(a), number(b)
            return Call(intrinsics.ifelse, (test, a, b), (), broadcast_type(a.type, b.type))
        case Call(np.tensordot, (a, b, Const(1)), ()) if rank_of(a.type) == rank_of(b.type) == 1:
            return Call(np.dot, (a, b), (), Scalar(expr.type.dtype, False))
        case Var():
            return Load(expr, (), Scalar(expr.type.dtype, False))
        case Call(np.sum):
            return replace(expr, type=Scalar(expr.type.dtype, False))
    return Call(np.sum, (expr,), (), Scalar(expr.type.dtype, False))


def real_part(expr: Expr) -> Expr:
    """`expr.real` of a complex value: the part of a complex cotangent or tangent that a real variable takes."""
    if isinstance(expr, Const):
        return Const(expr.value.real)  # type: ignore[attr-defined]
    if isinstance(expr, Call) and expr.func is np.broadcast_to:
        return rebroadcast(expr, real_part(expr.args[0]))
    type_ = expr.type
    assert isinstance(type_, (Array, Scalar))
    dtype = np.empty(0, type_.dtype).real.dtype.name
    part = Array(dtype, type_.rank, "A", type_.unit) if isinstance(type_, Array) else Scalar(dtype, type_.python)
    return Call(intrinsics.real_part, (expr,), (), part)


def zero_like(var: Var) -> Expr:
    """A zero of the type of a value: `0.0`, or `np.zeros_like(var)` (which reads the shape alone)."""
    if isinstance(var.type, Array):
        return Call(np.zeros_like, (var,), (), Array(var.type.dtype, var.type.rank, "C", var.type.unit))
    if isinstance(var.type, ListOf):
        if isinstance(var.type.item, Array):
            return Call(intrinsics.zero_items, (var,), (), var.type)
        return zero_items(var.type, Call(len, (var,), (), INT))
    if isinstance(var.type, Scalar) and var.type.dtype in ("float32", "complex64"):
        return Call(getattr(np, var.type.dtype), (Const(0.0),), (), Scalar(var.type.dtype, False))
    return Const(0.0)


def zero_items(type_: ListOf, length: Expr) -> Expr:
    """`[0.0] * length`: a run-time list of zeros."""
    one = Call(intrinsics.new_list, (Const(0j if is_complex(type_) else 0.0),), (), type_)
    return Call(operator.mul, (one, length), (), type_)


def int_add(a: Expr, b: Expr) -> Expr:
    """`a + b` of integers, folded."""
    match a, b:
        case Const(x), Const(y) if isinstance(x, int) and isinstance(y, int):
            return Const(x + y)
        case _, Const(0):
            return a
        case Const(0), _:
            return b
        case Call(operator.add, (left, Const(x))), Const(y) if isinstance(x, int) and isinstance(y, int):
            return int_add(left, Const(x + y))
        case Call(operator.sub, (left, Const(x))), Const(y) if isinstance(x, int) and isinstance(y, int):
            return int_add(left, Const(y - x))
        case _, Const(y) if isinstance(y, int) and y < 0:
            return Call(operator.sub, (a, Const(-y)), (), INT)
    return Call(operator.add, (a, b), (), INT)


def is_fresh(expr: Expr) -> bool:
    """Whether an array expression makes a new array (so that updating it in place changes nothing else)."""
    if isinstance(expr, Load):  # an index array or a mask copies
        return any(not isinstance(item, Slice) and isinstance(item.type, Array) for item in expr.index)
    if isinstance(expr, Call) and expr.func in _PARTS:
        return isinstance(expr.args[0], Call) and is_fresh(expr.args[0])
    if isinstance(expr, Call) and expr.func is np.diag:  # of a matrix: a read-only view
        return isinstance(expr.type, Array) and expr.type.rank == 2
    if isinstance(expr, Call) and expr.func is np.einsum:  # of one operand: may be a view with other axes
        return sum(isinstance(arg.type, Array) for arg in expr.args) != 1
    return not isinstance(expr, Var) and not (isinstance(expr, Call) and expr.func in intrinsics.VIEW_CALLS)


_PARTS = frozenset({intrinsics.real_part, intrinsics.imaginary_part})


def without_broadcast(expr: Expr) -> Expr:
    """`x` for `np.broadcast_to(x, shape)`, where the operation around broadcasts by itself."""
    while isinstance(expr, Call) and expr.func is np.broadcast_to:
        expr = expr.args[0]
    return expr


def rebroadcast(expr: Expr, x: Expr) -> Expr:
    """`np.broadcast_to(x, shape)` if `expr` is such a call, else `x`."""
    if isinstance(expr, Call) and expr.func is np.broadcast_to:
        type_ = expr.type
        if isinstance(type_, Array) and isinstance(x.type, (Array, Scalar)):
            type_ = replace(type_, dtype=x.type.dtype)
        return Call(np.broadcast_to, (x, *expr.args[1:]), expr.kwargs, type_)
    return x


def simplified(node: Expr) -> Expr:
    """One operator with redundant operations removed: `x ** 1`, `1.0 * x`, `-(-x)`."""
    match node:
        case Call(operator.add, (a, Call(operator.and_, (Const(False), _)))) if is_floating(a.type):
            return a  # the base in the derivative of a power with a known exponent
        case Call(operator.pow | np.power, (base, Const(exponent))) if exponent == 1 and is_floating(base.type):
            return base
        case Call(operator.mul | np.multiply, (a, b), ()) if _foldable(a, b):
            return mul(a, b)
        case Call(operator.add | np.add, (a, b), ()) if _foldable(a, b):
            return add(a, b)
        case Call(operator.neg | np.negative, (a,), ()) if is_floating(a.type):
            return neg(a)
    return node


def is_half(exponent: Any) -> bool:
    """Whether a power is a root and a few products: an odd number of halves, and few of them."""
    return isinstance(exponent, float) and abs(exponent) <= 2.5 and exponent % 1.0 == 0.5


def _foldable(a: Expr, b: Expr) -> bool:
    return is_floating(a.type) and is_floating(b.type)
