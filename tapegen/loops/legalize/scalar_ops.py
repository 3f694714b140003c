"""Legalization of operations on scalars: precision as in NumPy, errors as in Python.

numba widens (`float32 * 2.0` becomes float64, int32 sums become int64) and its Python scalars never raise.  Here each
operation gets the precision that its IR type states, and operations on Python scalars get explicit checks.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegen.ir import builders, intrinsics
from tapegen.ir.affine import folded, is_int
from tapegen.ir.nodes import Call, Const, Expr
from tapegen.ir.types import BOOL, FLOAT, INT, NARROW_INTEGERS, Scalar, Type
from tapegen.ir.types import COMPLEX as COMPLEX_DTYPES
from tapegen.loops.legalize.builder import LoopBuilder
from tapegen.loops.legalize.combinatorics import counted
from tapegen.loops.legalize.math_domains import DOMAINS, NUMPY_FOR, OVERFLOWS, is_bounded, is_inside, is_small, sign_of
from tapegen.loops.legalize.precision import common_dtype, convert, dtype_of, in_precision, narrowed
from tapegen.rules.external_functions import numbers, same_numbers

Operation = Callable[[LoopBuilder, Any, tuple[Expr, ...], Scalar], Expr]

_LARGEST_INT = 9.2e18  # what still fits a 64-bit integer, with a margin for rounding
TOO_LARGE = "an integer has more than 64 bits"


def operation(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """One operation on scalars that are already legal for numba."""
    table = COMPLEX if _is_of_complex(args, type_) else OPERATIONS
    if func not in table:
        raise w.unsupported(func, "of complex numbers" if table is COMPLEX else "")
    if converts_integers(func):
        args = tuple([representable(w, arg, type_.dtype) for arg in args])
    return table[func](w, func, args, type_)


def converts_integers(func: Any) -> bool:
    """Whether a function converts a Python integer to the dtype of the other operand, which raises out of bounds."""
    return isinstance(func, np.ufunc) or func in _CONVERTING


def representable(w: LoopBuilder, x: Expr, dtype: str) -> Expr:
    """A scalar; a Python integer after a check that it is one of a narrower dtype, to which NumPy converts it."""
    return _within(w, x, dtype) if x.type == INT else x


def storable(w: LoopBuilder, x: Expr, given: Type | None, dtype: str, *, chosen: bool) -> Expr:
    """A number after a check that it can be stored into an array of integers, as one of this type.

    NumPy converts it as `int` does, so that nan and numbers out of bounds raise.  It casts numbers of its own where
    the integers have no sign, and where the elements are `chosen` by index arrays or masks.
    """
    if not isinstance(given, Scalar) or (not given.python and (chosen or dtype.startswith("u"))):
        return x
    if dtype not in NARROW_INTEGERS and dtype != "int64":
        return x
    if given.dtype.startswith("float"):
        x, limits = w.bind(x), np.iinfo(dtype)
        above = Call(operator.gt, (x, Const(float(limits.min) - 1.0)), (), BOOL)
        below = Call(operator.lt, (x, Const(min(float(limits.max) + 1.0, _LARGEST_INT))), (), BOOL)
        inside = Call(intrinsics.and_, (above, below), (), BOOL)
        w.check(Call(operator.not_, (inside,), (), BOOL), OverflowError, f"cannot convert float to {dtype}")
        return x
    return _within(w, x, dtype) if given.dtype.startswith(("int", "uint")) else x


def _within(w: LoopBuilder, x: Expr, dtype: str) -> Expr:
    """An integer after a check that it is one of a narrower dtype."""
    if dtype not in NARROW_INTEGERS or dtype_of(x) == dtype:
        return x
    limits, form = np.iinfo(dtype), w.facts.form(x)
    inside = [form - int(limits.min), *([-form + int(limits.max)] if dtype != "uint64" else [])]
    if not all(map(w.facts.nonnegative, inside)):
        if not isinstance(x, Const):
            x = w.bind(x)
        for each in inside:
            w.require(each, OverflowError, f"Python integer out of bounds for {dtype}")
    return x


def _is_of_complex(args: tuple[Expr, ...], type_: Scalar) -> bool:
    return type_.dtype in COMPLEX_DTYPES or not COMPLEX_DTYPES.isdisjoint(map(dtype_of, args))


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def _sum_or_product(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    func = _OPERATORS.get(func, func)
    dtype = type_.dtype
    if dtype == "bool":
        return Call({operator.add: operator.or_, operator.mul: operator.and_}[func], args, (), BOOL)
    if dtype.startswith(("int", "uint")):
        wide = Call(func, tuple(convert(arg, "int64") if dtype_of(arg) == "bool" else arg for arg in args), (), INT)
        return folded(wide) if dtype == "int64" else convert(wide, dtype)
    for number, factor in (args, args[::-1]):  # mostly the seed of a derivative
        if func is operator.mul and builders.is_const(factor, 1.0) and dtype_of(number) == dtype:
            return number
    return Call(func, in_precision(args, dtype), (), type_)


def _negative(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    (x,) = args
    if isinstance(x, Const) and isinstance(x.value, (int, float)) and not isinstance(x.value, bool):
        return Const(-x.value)
    if dtype_of(x) == "bool":
        x = convert(x, "int64")
    return narrowed(Call(operator.neg, (x,), (), INT if "int" in type_.dtype else type_), type_.dtype)


def _divide(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    func = _OPERATORS.get(func, func)
    a, b = args
    integers = type_.dtype.startswith(("int", "uint"))
    if type_.python:
        message = "integer division or modulo by zero" if integers else "float division by zero"
        b = nonzero(w, b, message if is_int(b) and integers else "division by zero" if is_int(b) else message)
    if integers:
        return narrowed(Call(func, (a, b), (), INT), type_.dtype)
    return Call(func, in_precision((a, b), type_.dtype), (), type_)


def nonzero(w: LoopBuilder, x: Expr, message: str) -> Expr:
    """`x` after a check that it is not 0."""
    if isinstance(x, Const):
        if x.value == 0:
            w.check(Const(True), ZeroDivisionError, message)
        return x
    if is_int(x):
        form = w.facts.form(x)
        if w.facts.nonnegative(form - 1) or w.facts.nonnegative(-form - 1):
            return x
    elif sign_of(x, w.facts.signs) == "+":
        return x
    x = w.bind(x)
    if x not in w.facts.nonzero:
        zero = Const(0) if is_int(x) else Const(0.0)
        w.check(Call(operator.eq, (x, zero), (), BOOL), ZeroDivisionError, message)
        w.facts.assume_nonzero(x)
    return x


def _power(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    x, y = args[:2]
    if len(args) == 3:
        raise w.unsupported("pow with a modulus")
    if type_.dtype.startswith(("int", "uint")):
        if not (isinstance(y, Const) or w.facts.nonnegative(w.facts.form(y))):
            y = w.bind(y)
            w.check(Call(operator.lt, (y, Const(0)), (), BOOL), ValueError, "negative power of an integer")
        return narrowed(Call(operator.pow, (x, y), (), INT), type_.dtype)
    if func is math.pow and is_int(y):
        y = convert(y, "float64")
    if not type_.python:
        match y:
            case Const(int() | float() as exponent):
                if func is np.power and exponent == 0.5:
                    return Call(np.sqrt, (convert(x, type_.dtype),), (), type_)  # also of -0.0 and of -inf
                if builders.is_half(exponent):
                    return _half_power(w, convert(x, type_.dtype), exponent, type_)
                if exponent == int(exponent) and abs(exponent) <= 4:
                    return _whole_power(convert(x, type_.dtype), int(exponent), type_)
        return Call(operator.pow, in_precision((x, y), type_.dtype), (), type_)
    return _python_power(w, x, y)


def _whole_power(x: Expr, exponent: int, type_: Scalar) -> Call:
    """`x ** exponent` for a constant integer; numba's own negative powers raise at 0."""
    if exponent >= 0:
        return Call(operator.pow, (x, Const(exponent)), (), type_)
    base = x if exponent == -1 else Call(operator.pow, (x, Const(-exponent)), (), type_)
    return Call(operator.truediv, (convert(Const(1.0), type_.dtype), base), (), type_)


def _half_power(w: LoopBuilder, x: Expr, exponent: float, type_: Scalar) -> Expr:
    """`x ** exponent` for half of an odd integer, as a product with the root: a fraction of the time of a power.

    The power of -inf is that of inf, and that of -0.0 is that of 0.0; their roots are not.
    """
    x = w.bind(x)
    if (sign := sign_of(x, w.facts.signs)) != "+":
        positive: Expr = Call(operator.add, (x, convert(Const(0.0), type_.dtype)), (), type_)
        if not sign and not type_.python:  # Python's own floats have been checked
            infinite = Call(operator.eq, (x, convert(Const(-np.inf), type_.dtype)), (), BOOL)
            positive = Call(intrinsics.ifelse, (infinite, convert(Const(np.inf), type_.dtype), positive), (), type_)
        x = w.bind(positive)
    power: Expr = Call(np.sqrt, (x,), (), type_)
    if whole := int(abs(exponent)):
        power = Call(operator.mul, (_whole_power(x, whole, type_) if whole > 1 else x, power), (), type_)
    return power if exponent > 0 else _whole_power(power, -1, type_)


def _python_power(w: LoopBuilder, x: Expr, y: Expr) -> Expr:
    """`x ** y` of Python floats: checks for negative bases with fractional exponents, division by zero and overflow."""
    x, y = w.bind(x), w.bind(y)
    below = Call(operator.lt, (x, Const(0.0)), (), BOOL)
    match y:
        case Const(int() | float() as exponent):
            if exponent < 0:
                x = nonzero(w, x, "0.0 cannot be raised to a negative power")
            if exponent == int(exponent):
                power = _whole_power(convert(x, "float64"), int(exponent), FLOAT)
                if exponent >= 0 and is_small(x, w.facts.small):
                    return power
                return _finite(w, power, (x,), "Numerical result out of range")
            if not sign_of(x, w.facts.signs):
                w.check(below, ValueError, "negative number to a fractional power")
            if builders.is_half(exponent):
                half = _half_power(w, convert(x, "float64"), exponent, FLOAT)
                return half if abs(exponent) < 1 else _finite(w, half, (x,), "Numerical result out of range")
        case _:
            zero = Call(operator.eq, (x, Const(0.0)), (), BOOL)
            negative = Call(operator.lt, (y, Const(0)), (), BOOL)
            w.check(
                Call(intrinsics.and_, (zero, negative), (), BOOL),
                ZeroDivisionError,
                "0.0 cannot be raised to a negative power",
            )
            if not is_int(y):
                whole = Call(np.floor, (y,), (), FLOAT)
                broken = Call(operator.ne, (y, whole), (), BOOL)
                w.check(
                    Call(intrinsics.and_, (below, broken), (), BOOL),
                    ValueError,
                    "negative number to a fractional power",
                )
    return _finite(
        w, Call(operator.pow, (convert(x, "float64"), y), (), FLOAT), (x, y), "Numerical result out of range"
    )


def _finite(w: LoopBuilder, result: Expr, args: tuple[Expr, ...], message: str) -> Expr:
    """A result after a check that it did not overflow."""
    value = w.bind(result)
    wrong: Expr = Call(math.isinf, (value,), (), BOOL)
    for arg in args:
        if not isinstance(arg, Const) and not is_int(arg):
            wrong = Call(intrinsics.and_, (wrong, Call(math.isfinite, (arg,), (), BOOL)), (), BOOL)
    w.check(wrong, OverflowError, message)
    return value


# ---- comparison and logic --------------------------------------------------------------------------------------------


def _compare(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    func = _OPERATORS.get(func, func)
    if all(isinstance(arg.type, Scalar) for arg in args) and common_dtype(args) == "float32":
        args = tuple(convert(arg, "float32") for arg in args)
    return Call(func, args, (), BOOL)


def _bits(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    func = _OPERATORS.get(func, func)
    if type_.dtype == "bool":
        if func is operator.invert:
            return Call(operator.not_, args, (), BOOL)
        return Call(func, args, (), BOOL)
    return narrowed(Call(func, args, (), INT), type_.dtype)


def _shift(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """A bit shift; processors take the shift count modulo the width of the integer."""
    func = _OPERATORS.get(func, func)
    number, places = args
    width = 1 if type_.dtype == "bool" else np.iinfo(type_.dtype).bits
    if width == 1 or (isinstance(places, Const) and 0 <= places.value < width):  # type: ignore[operator]
        return _bits(w, func, args, type_)
    number, places = w.bind(number), w.bind(places)
    if type_.python:
        w.check(Call(operator.lt, (places, Const(0)), (), BOOL), ValueError, "negative shift count")
        if func is operator.lshift:  # whether the result fits in 64 bits is checked where that is not known
            return _bits(w, func, (number, places), type_)
    inside = Call(operator.ge, (places, Const(0)), (), BOOL), Call(operator.lt, (places, Const(width)), (), BOOL)
    signs = func is operator.rshift and not type_.dtype.startswith("u")
    beyond = Call(func, (number, Const(width - 1)), (), INT) if signs else Const(0)
    moved = Call(func, (number, places), (), INT)
    return narrowed(
        Call(intrinsics.ifelse, (Call(intrinsics.and_, inside, (), BOOL), moved, beyond), (), INT), type_.dtype
    )


def _logical(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    truth = tuple(convert(arg, "bool") for arg in args)
    if func in (np.logical_not, operator.not_):
        return Call(operator.not_, truth, (), BOOL)
    return Call({np.logical_and: operator.and_, np.logical_or: operator.or_}.get(func, operator.xor), truth, (), BOOL)


# ---- selection -------------------------------------------------------------------------------------------------------


def _where(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    test, a, b = args
    return Call(intrinsics.ifelse, (convert(test, "bool"), convert(a, type_.dtype), convert(b, type_.dtype)), (), type_)


def _clip(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    result, *limits = args
    for limit, bound in zip(limits, (np.maximum, np.minimum)):
        if not (isinstance(limit, Const) and limit.value is None):
            limit = _limit(w, limit, bound, type_.dtype)
            result = Call(bound, (convert(result, type_.dtype), convert(limit, type_.dtype)), (), type_)
    return result


def _limit(w: LoopBuilder, limit: Expr, bound: np.ufunc, dtype: str) -> Expr:
    """A limit of `np.clip`: a Python integer beyond a narrower dtype is none, or an error where nothing is within."""
    if limit.type != INT or dtype not in NARROW_INTEGERS:
        return limit
    if bound is np.maximum:
        limit = Call(max, (limit, Const(int(np.iinfo(dtype).min))), (), INT)
    elif dtype != "uint64":
        limit = Call(min, (limit, Const(int(np.iinfo(dtype).max))), (), INT)
    return representable(w, limit, dtype)


def _strong_mul(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """`c * p`, but 0 where c is 0."""
    c = w.bind(convert(args[0], type_.dtype), "weight")
    func, factor = builders.as_factor(args[1])
    func = operator.mul if func is operator.mul else operator.truediv
    product = Call(func, in_precision((c, factor), type_.dtype), (), type_)
    zero = convert(Const(0.0), type_.dtype)
    return Call(intrinsics.ifelse, (Call(operator.ne, (c, zero), (), BOOL), product, zero), (), type_)


def _guarded(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """The guarded product in the shape that `rounding_sensitive` recognizes, so that the guard decides nothing."""
    product, used = args
    zero = convert(Const(0.0), type_.dtype)
    return Call(intrinsics.ifelse, (convert(used, "bool"), convert(product, type_.dtype), zero), (), type_)


def _heaviside(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    x = w.bind(convert(args[0], type_.dtype))
    zero, one = convert(Const(0.0), type_.dtype), convert(Const(1.0), type_.dtype)
    positive = Call(operator.gt, (x, zero), (), BOOL)
    at_zero = Call(operator.eq, (x, zero), (), BOOL)
    negative = Call(operator.lt, (x, zero), (), BOOL)
    other = Call(intrinsics.ifelse, (negative, zero, x), (), type_)  # NaN stays NaN
    inner = Call(intrinsics.ifelse, (at_zero, convert(args[1], type_.dtype), other), (), type_)
    return Call(intrinsics.ifelse, (positive, one, inner), (), type_)


# ---- functions of one or two scalars ---------------------------------------------------------------------------------


def _direct(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """A function that numba supports as it is, given operands of the right precision."""
    if type_.dtype in ("float32", "float64"):
        args = tuple(arg if func in _MIXED and k else convert(arg, type_.dtype) for k, arg in enumerate(args))
    return narrowed(Call(func, args, (), INT if type_.dtype.startswith("int") else type_), type_.dtype)


def _fmod(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """The remainder with the sign of the dividend, of which numba has that of floats alone."""
    if "int" not in type_.dtype:
        return _direct(w, func, args, type_)
    a, b = (w.bind(arg) for arg in args)
    if type_.dtype.startswith("u"):
        return narrowed(Call(operator.mod, (a, b), (), INT), type_.dtype)
    rest = Call(operator.mod, (Call(builtins.abs, (a,), (), INT), Call(builtins.abs, (b,), (), INT)), (), INT)
    below = Call(operator.lt, (a, Const(0)), (), BOOL)
    signed = Call(intrinsics.ifelse, (below, Call(operator.neg, (rest,), (), INT), rest), (), INT)
    return narrowed(signed, type_.dtype)


def _sign(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """The sign, which has none itself where it is zero."""
    sign = _direct(w, func, args, type_)
    if not type_.dtype.startswith("float"):
        return sign
    return Call(operator.add, (sign, convert(Const(0.0), type_.dtype)), (), type_)


def _rounding(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    if type_.dtype.startswith(("int", "uint", "bool")):
        return args[0]
    func = {np.fix: np.trunc, np.ceil: np.ceil, np.floor: np.floor, np.rint: np.rint}.get(func, np.trunc)
    return Call(func, (convert(args[0], type_.dtype),), (), type_)


def _round(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """`np.round`, and Python's `round` to some decimals."""
    if type_.dtype.startswith(("int", "uint")):
        if is_int(args[0]) and len(args) == 1:
            return args[0]
        if len(args) > 1:
            raise w.unsupported("round of integers to decimals")
        x = _fits_int(w, args[0])
        return Call(builtins.round, (x,), (), INT)
    decimals = args[1] if len(args) > 1 else Const(0)
    if func is builtins.round:
        return Call(builtins.round, (args[0], decimals), (), type_)
    x = convert(args[0], type_.dtype)
    if decimals == Const(0):
        return Call(np.rint, (x,), (), type_)
    if not isinstance(decimals, Const) or not isinstance(decimals.value, int):
        raise w.unsupported("np.round to a number of decimals that is not constant")
    scale = convert(Const(10.0 ** abs(decimals.value)), type_.dtype)
    up, down = (operator.mul, operator.truediv) if decimals.value > 0 else (operator.truediv, operator.mul)
    return Call(down, (Call(np.rint, (Call(up, (x, scale), (), type_),), (), type_), scale), (), type_)


def _same(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    return convert(args[0], type_.dtype)


def _cast(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    (x,) = args
    if type_.dtype == "int64" and type_.python and dtype_of(x).startswith("float"):
        return Call(int, (_fits_int(w, x),), (), INT)
    if type_.dtype == "int64" and dtype_of(x) == "bool":
        return convert(x, "int64")
    return convert(representable(w, x, type_.dtype), type_.dtype)


def _fits_int(w: LoopBuilder, x: Expr) -> Expr:
    """A float after a check that it is finite and fits an integer."""
    x = w.bind(x)
    w.check(Call(operator.ne, (x, x), (), BOOL), ValueError, "cannot convert float NaN to integer")
    inside = Call(operator.lt, (Call(builtins.abs, (x,), (), FLOAT), Const(_LARGEST_INT)), (), BOOL)
    w.check(Call(operator.not_, (inside,), (), BOOL), OverflowError, "cannot convert float to integer")
    return x


def _exact(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """An operation on integers after a check, in floats, that its result fits 64 bits."""
    (result,) = args
    if not isinstance(result, Call):
        return result
    result = Call(result.func, tuple(w.bind(arg) for arg in result.args), (), INT)
    size = Call(builtins.abs, (_in_floats(result),), (), FLOAT)
    inside = Call(operator.lt, (size, Const(_LARGEST_INT)), (), BOOL)
    w.check(Call(operator.not_, (inside,), (), BOOL), OverflowError, TOO_LARGE)
    return result


def _in_floats(expr: Expr) -> Expr:
    match expr:
        case Call(operator.lshift, (a, b)):
            scale = Call(operator.pow, (Const(2.0), b), (), FLOAT)
            return Call(operator.mul, (_in_floats(a), scale), (), FLOAT)
        case Call(operator.pow, (a, b)):
            return Call(operator.pow, (_in_floats(a), b), (), FLOAT)
        case Call(operator.add | operator.sub | operator.mul | operator.neg as func, args):
            return Call(func, tuple(map(_in_floats, args)), (), FLOAT)
    return convert(expr, "float64")


def _to_int(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """`math.floor`, `math.ceil`, `math.trunc`."""
    if is_int(args[0]):
        return args[0]
    return Call(func, (_fits_int(w, args[0]),), (), INT)


def _square(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    x = w.bind(convert(args[0], type_.dtype))
    return _sum_or_product(w, operator.mul, (x, x), type_)


def _reciprocal(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    if type_.dtype.startswith(("int", "uint")):
        return narrowed(Call(operator.floordiv, (convert(Const(1), type_.dtype), args[0]), (), INT), type_.dtype)
    return Call(operator.truediv, in_precision((convert(Const(1.0), type_.dtype), args[0]), type_.dtype), (), type_)


def _absolute(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    x = convert(args[0], type_.dtype) if type_.dtype.startswith("float") else args[0]
    return narrowed(Call(builtins.abs, (x,), (), INT if type_.dtype.startswith("int") else type_), type_.dtype)


def _imaginary(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    return convert(Const(0.0), type_.dtype) if func is np.imag else Call(func, args, (), type_)


def _extreme(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """Python's `min` and `max` of several scalars."""
    return Call(func, args, (), type_)


def _as_written(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    return Call(func, args, (), type_)


# ---- math ------------------------------------------------------------------------------------------------------------


def _math(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """A function of `math`: computes in float64 and raises where Python does."""
    args = tuple(arg if func in _MIXED and k else convert(arg, "float64") for k, arg in enumerate(args))
    if func is math.log and len(args) == 2:
        top = _math(w, math.log, args[:1], FLOAT)
        bottom = nonzero(w, _math(w, math.log, args[1:], FLOAT), "division by zero")
        return Call(operator.truediv, (top, bottom), (), FLOAT)
    if func in DOMAINS and not is_inside(func, args[0], w.facts.signs, w.facts.small):
        args = tuple(w.bind(arg) for arg in args)
        w.check(DOMAINS[func](*args), ValueError, "math domain error")
    result = Call(NUMPY_FOR.get(func, func), args, (), FLOAT)
    if func not in OVERFLOWS or is_bounded(func, args[0], w.facts.signs):
        return result
    return _finite(w, result, args, "math range error")


def from_library(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """A function of scalars that the backend takes from a library: it computes in double precision."""
    dtype = numbers()[func]
    func = same_numbers().get(func, func)
    result = Call(func, tuple(convert(arg, dtype) for arg in args), (), Scalar(dtype))
    return convert(result, type_.dtype)


_MIXED = frozenset({np.ldexp, math.ldexp})  # the second operand is an integer

_OPERATORS: dict[Any, Any] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor,
    np.invert: operator.invert,
    np.left_shift: operator.lshift,
    np.right_shift: operator.rshift,
}

_CONVERTING = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.pow, builtins.pow),
        *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
    }
)
"""The operators that are ufuncs where an operand is NumPy's."""

_UFUNCS = (
    *(np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh),
    *(np.arcsinh, np.arccosh, np.arctanh, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p),
    *(np.sqrt, np.cbrt, np.maximum, np.minimum, np.fmax, np.fmin, np.arctan2, np.hypot, np.copysign),
    *(np.logaddexp, np.logaddexp2, np.nextafter, np.spacing, np.deg2rad, np.rad2deg, np.degrees, np.radians),
    *(np.sinc, np.nan_to_num, np.ldexp, np.gcd, np.lcm),
)
_PREDICATES = (np.isnan, np.isinf, np.isfinite, np.signbit, np.isneginf, np.isposinf, np.isreal)
_MATH = (
    *(math.sqrt, math.exp, math.exp2, math.expm1, math.log, math.log2, math.log10, math.log1p, math.cbrt),
    *(math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.atan2, math.sinh, math.cosh, math.tanh),
    *(math.asinh, math.acosh, math.atanh, math.hypot, math.fmod, math.gamma, math.lgamma, math.erf, math.erfc),
    *(math.copysign, math.degrees, math.radians, math.fabs, math.ldexp, math.nextafter),
)

COMPLEX: dict[Any, Operation] = {}
"""Functions with a lowering where an operand or the result is complex (`complex_ops`)."""

OPERATIONS: dict[Any, Operation] = {
    **dict.fromkeys((operator.add, operator.sub, operator.mul, np.add, np.subtract, np.multiply), _sum_or_product),
    **dict.fromkeys((operator.truediv, operator.floordiv, operator.mod), _divide),
    **dict.fromkeys((np.divide, np.floor_divide, np.remainder), _divide),
    **dict.fromkeys((operator.neg, np.negative), _negative),
    **dict.fromkeys((operator.pow, np.power, np.float_power, builtins.pow, math.pow), _power),
    **dict.fromkeys((operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne), _compare),
    **dict.fromkeys((np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal), _compare),
    **dict.fromkeys((operator.is_, operator.is_not), _as_written),
    **dict.fromkeys((operator.and_, operator.or_, operator.xor, operator.invert), _bits),
    **dict.fromkeys((operator.lshift, operator.rshift, np.left_shift, np.right_shift), _shift),
    **dict.fromkeys((np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert), _bits),
    **dict.fromkeys((np.logical_and, np.logical_or, np.logical_xor, np.logical_not, operator.not_), _logical),
    **dict.fromkeys((np.where, intrinsics.ifelse), _where),
    **dict.fromkeys((np.floor, np.ceil, np.trunc, np.rint, np.fix), _rounding),
    **dict.fromkeys((np.round, np.around, builtins.round), _round),
    **dict.fromkeys((math.floor, math.ceil, math.trunc), _to_int),
    **dict.fromkeys((operator.pos, np.positive, np.conjugate, np.real), _same),
    **dict.fromkeys((builtins.float, builtins.int, builtins.bool), _cast),
    **dict.fromkeys((np.float64, np.float32, np.bool_, np.complex128), _cast),
    **dict.fromkeys((np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8), _cast),
    **dict.fromkeys((np.absolute, np.fabs, builtins.abs, operator.abs), _absolute),
    **dict.fromkeys((np.imag, np.angle), _imaginary),
    **dict.fromkeys((builtins.min, builtins.max), _extreme),
    **dict.fromkeys(_UFUNCS, _direct),
    np.fmod: _fmod,
    np.sign: _sign,
    **dict.fromkeys(_PREDICATES, _as_written),
    **dict.fromkeys((math.isnan, math.isinf, math.isfinite, math.gcd), _as_written),
    **dict.fromkeys(_MATH, _math),
    **dict.fromkeys((math.factorial, math.perm, math.comb), counted),
    np.clip: _clip,
    intrinsics.strong_mul: _strong_mul,
    intrinsics.guarded: _guarded,
    intrinsics.exact: _exact,
    np.heaviside: _heaviside,
    np.square: _square,
    np.reciprocal: _reciprocal,
}
"""Every function of scalars that has a lowering; all but those of `math` also work element-wise."""
