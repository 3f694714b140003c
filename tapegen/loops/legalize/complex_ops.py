"""Legalization of operations on complex scalars; an operation without an entry here runs as Python.

numba divides complex numbers as Python does, which raises, and NumPy's functions as NumPy does, which gives NaN.
"""

from __future__ import annotations

import builtins
import cmath
import math
import operator
from typing import Any

import numpy as np

from tapegen.ir import builders, intrinsics
from tapegen.ir.nodes import Call, Const, Expr
from tapegen.ir.types import BOOL, FLOAT, Scalar, is_complex
from tapegen.loops.legalize.builder import LoopBuilder
from tapegen.loops.legalize.precision import convert
from tapegen.loops.legalize.scalar_ops import COMPLEX, OPERATIONS, Operation

_LONGEST_POWER = 4


def _converted(args: tuple[Expr, ...], type_: Scalar) -> tuple[Expr, ...]:
    return tuple(convert(arg, type_.dtype) for arg in args)


def _sum_or_product(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    return Call(_OPERATORS.get(func, func), _converted(args, type_), (), type_)


def _divide(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    if not type_.python:
        return Call(np.divide, _converted(args, type_), (), type_)
    return Call(operator.truediv, (args[0], _nonzero(w, args[1], "complex division by zero")), (), type_)


def _nonzero(w: LoopBuilder, x: Expr, message: str) -> Expr:
    x = w.bind(x)
    w.check(Call(operator.eq, (x, Const(0.0)), (), BOOL), ZeroDivisionError, message)
    return x


def _power(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    x, y = args[:2]
    if len(args) == 3:
        raise w.unsupported("pow with a modulus")
    if isinstance(y, Const) and isinstance(y.value, (int, float)) and y.value == int(y.value):
        count = abs(int(y.value))
        if 0 < count <= _LONGEST_POWER:
            x = w.bind(convert(x, type_.dtype))
            power: Expr = x
            for _ in range(count - 1):
                power = Call(operator.mul, (power, x), (), type_)
            if y.value > 0:
                return power
            return _divide(w, operator.truediv, (Const(1.0), power), type_)
    if func is operator.pow and type_.python:
        return _checked(w, Call(operator.pow, _converted((x, y), type_), (), type_), (x, y))
    return Call(operator.pow, _converted((x, y), type_), (), type_)


def _checked(w: LoopBuilder, result: Call, args: tuple[Expr, ...]) -> Expr:
    """A result after a check that it is finite if its operands are: Python raises otherwise."""
    value = w.bind(result)
    wrong: Expr = Call(operator.not_, (Call(cmath.isfinite, (value,), (), BOOL),), (), BOOL)
    for arg in args:
        if not isinstance(arg, Const):
            finite = Call(cmath.isfinite if is_complex(arg.type) else math.isfinite, (arg,), (), BOOL)
            wrong = Call(intrinsics.and_, (wrong, finite), (), BOOL)
    w.check(wrong, OverflowError, "math range error")
    return value


def _as_it_is(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    return Call(_OPERATORS.get(func, func), args, (), type_)


def _of_type(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    return Call(func, _converted(args, type_), (), type_)


def _part(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    return Call(_PARTS[func], args, (), type_)


def _absolute(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    return convert(Call(builtins.abs, args, (), type_), type_.dtype)


def _same(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    return convert(args[0], type_.dtype)


def _made(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """`complex(a, b)`."""
    if len(args) == 1:
        return convert(args[0], type_.dtype)
    return Call(func, args, (), type_)


def _of_parts(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    made = Call(builtins.complex, tuple(convert(arg, "float64") for arg in args), (), Scalar("complex128"))
    return convert(made, type_.dtype)


def _where(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    test, a, b = args
    return Call(intrinsics.ifelse, (convert(test, "bool"), convert(a, type_.dtype), convert(b, type_.dtype)), (), type_)


def _strong_mul(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """`c * p`, but 0 where c is 0."""
    c = w.bind(convert(args[0], type_.dtype), "weight")
    func, factor = builders.as_factor(args[1])
    func = operator.mul if func is operator.mul else np.divide
    zero = convert(Const(0.0), type_.dtype)
    product = Call(func, (c, convert(factor, type_.dtype)), (), type_)
    return Call(intrinsics.ifelse, (Call(operator.ne, (c, zero), (), BOOL), product, zero), (), type_)


def _guarded(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    product, used = args
    zero = convert(Const(0.0), type_.dtype)
    return Call(intrinsics.ifelse, (convert(used, "bool"), convert(product, type_.dtype), zero), (), type_)


def _square(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    x = w.bind(convert(args[0], type_.dtype))
    return Call(operator.mul, (x, x), (), type_)


def _reciprocal(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    return Call(np.divide, (convert(Const(1.0), type_.dtype), convert(args[0], type_.dtype)), (), type_)


def _angle(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    z = w.bind(args[0])
    parts: tuple[Expr, ...] = (Const(0.0), z)
    if is_complex(z.type):
        parts = (Call(intrinsics.imaginary_part, (z,), (), type_), Call(intrinsics.real_part, (z,), (), type_))
    angle: Expr = Call(math.atan2, parts, (), FLOAT)
    if len(args) > 1 and args[1] != Const(False):
        angle = Call(operator.mul, (Const(180.0 / math.pi), angle), (), FLOAT)
    return convert(angle, type_.dtype)


def _cmath_test(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    return Call(func, (convert(args[0], "complex128"),), (), BOOL)


def _cmath(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """A function of `cmath`, which raises where Python's function does."""
    if func is cmath.log and len(args) == 2:
        top, bottom = (_cmath(w, cmath.log, (arg,), type_) for arg in args)
        return _divide(w, operator.truediv, (top, bottom), type_)
    args = tuple(w.bind(convert(arg, "float64" if func is cmath.rect else "complex128")) for arg in args)
    return _checked(w, Call(func, args, (), type_), args)


_OPERATORS: dict[Any, Any] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.negative: operator.neg,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}
_PARTS = {
    np.real: intrinsics.real_part,
    np.imag: intrinsics.imaginary_part,
    intrinsics.real_part: intrinsics.real_part,
    intrinsics.imaginary_part: intrinsics.imaginary_part,
}
_UFUNCS = (
    *(np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh),
    *(np.arcsinh, np.arccosh, np.arctanh, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt),
    np.conjugate,
)
_CMATH = (
    *(cmath.exp, cmath.log, cmath.log10, cmath.sqrt, cmath.sin, cmath.cos, cmath.tan, cmath.asin, cmath.acos),
    *(cmath.atan, cmath.sinh, cmath.cosh, cmath.tanh, cmath.asinh, cmath.acosh, cmath.atanh, cmath.rect),
)
_TESTS = (cmath.isnan, cmath.isinf, cmath.isfinite)
_EVERYWHERE: dict[Any, Operation] = {
    **dict.fromkeys((intrinsics.real_part, intrinsics.imaginary_part), _part),
    **dict.fromkeys(_CMATH, _cmath),
    **dict.fromkeys(_TESTS, _cmath_test),
    np.complex64: _same,
    cmath.phase: _angle,
    builtins.complex: _made,
    intrinsics.of_parts: _of_parts,
}
"""Functions with complex results, or of `cmath`, also where their operands are real."""

_COMPLEX: dict[Any, Operation] = {
    **dict.fromkeys((operator.add, operator.sub, operator.mul, np.add, np.subtract, np.multiply), _sum_or_product),
    **dict.fromkeys((operator.truediv, np.divide), _divide),
    **dict.fromkeys((operator.pow, np.power, np.float_power, builtins.pow), _power),
    **dict.fromkeys((operator.neg, np.negative, operator.eq, operator.ne, np.equal, np.not_equal), _as_it_is),
    **dict.fromkeys((np.isnan, np.isinf, np.isfinite), _as_it_is),
    **dict.fromkeys((operator.pos, np.positive, np.complex128), _same),
    **dict.fromkeys(_PARTS, _part),
    **dict.fromkeys((np.absolute, builtins.abs, operator.abs), _absolute),
    **dict.fromkeys((np.where, intrinsics.ifelse), _where),
    **dict.fromkeys(_UFUNCS, _of_type),
    **_EVERYWHERE,
    np.angle: _angle,
    intrinsics.strong_mul: _strong_mul,
    intrinsics.guarded: _guarded,
    np.square: _square,
    np.reciprocal: _reciprocal,
}

COMPLEX.update(_COMPLEX)
OPERATIONS.update(_EVERYWHERE)
