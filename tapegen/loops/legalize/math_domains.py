"""Domains of functions of `math`: the arguments for which they raise, and the results that overflow."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np

from tapegen.ir import intrinsics
from tapegen.ir.affine import is_real
from tapegen.ir.nodes import Call, Const, Expr, Var
from tapegen.ir.types import BOOL, FLOAT


def sign_of(x: Expr, signs: Mapping[Var, str]) -> str:
    """The known sign of a scalar: "+" for positive (or NaN), "0+" for not negative, "" for unknown.

    Parameters
    ----------
    x : Expr
        The scalar.
    signs : mapping of Var to str
        Known signs of variables; others are unknown.
    """
    if isinstance(x, Var):
        return signs.get(x, "")
    if isinstance(x, Const) and isinstance(x.value, (int, float, np.float32)):
        return "+" if x.value > 0 else "0+" if x.value == 0 else ""
    if not isinstance(x, Call):
        return ""
    func, args = x.func, x.args
    if func is operator.add:
        found = {sign_of(arg, signs) for arg in args}
        return "" if "" in found else "+" if "+" in found else "0+"
    if func is operator.mul or func is operator.truediv:
        squared = func is operator.mul and args[0] == args[1]
        return "0+" if squared or all(sign_of(arg, signs) for arg in args) else ""
    if func is operator.pow:
        exponent = args[1].value if isinstance(args[1], Const) else None
        return "0+" if isinstance(exponent, int) and exponent % 2 == 0 else ""
    if func in _ROOTS:
        return sign_of(args[0], signs) or "0+"
    if func is builtins.float or func is np.float32:
        sign = sign_of(args[0], signs)
        exact = func is builtins.float or args[0].type == x.type
        return sign if exact else sign and "0+"  # float32 has no smaller numbers than 1e-45
    return "0+" if func in _NEVER_NEGATIVE else ""


_ROOTS: frozenset[Any] = frozenset({math.sqrt, np.sqrt})
_NEVER_NEGATIVE: frozenset[Any] = frozenset({builtins.abs, np.abs, math.exp, np.exp, math.fabs, np.cosh})


def is_small(x: Expr, small: Set[Var]) -> bool:
    """Whether a scalar is known to be of magnitude 1 at most, or NaN.

    Parameters
    ----------
    x : Expr
        The scalar.
    small : set of Var
        Such variables; others are unknown.
    """
    match x:
        case Var():
            return x in small
        case Const(int() | float() as value):
            return abs(value) <= 1
        case Call(operator.mul | operator.neg | builtins.abs | np.abs | math.fabs, factors):
            return all(is_small(each, small) for each in factors)
        case Call(operator.pow, (base, Const(int() as exponent))):
            return exponent >= 0 and is_small(base, small)
        case Call(func):
            return func in _AT_MOST_ONE and is_real(x)
    return False


_AT_MOST_ONE: frozenset[Any] = frozenset({math.sin, np.sin, math.cos, np.cos, math.tanh, np.tanh, math.erf})


def is_inside(func: Any, x: Expr, signs: Mapping[Var, str], small: Set[Var]) -> bool:
    """Whether an argument lies in the domain; see `sign_of` and `is_small`."""
    if DOMAINS[func] is _infinite:
        return is_small(x, small)
    sign = sign_of(x, signs)
    return (func is math.sqrt and sign != "") or (func in (math.log, math.log2, math.log10) and sign == "+")


def is_bounded(func: Any, x: Expr, signs: Mapping[Var, str]) -> bool:
    """Whether a result cannot overflow: an exponential of what is not positive; see `sign_of`."""
    match x:
        case Call(operator.neg, (size,)):
            return func in _EXPONENTIALS and sign_of(size, signs) != ""
    return False


_EXPONENTIALS: frozenset[Any] = frozenset({math.exp, math.exp2, math.expm1})


def _test(func: Any, bound: float) -> Callable[..., Expr]:
    return lambda x, *_: Call(func, (x, Const(bound)), (), BOOL)


def _outside_one(x: Expr) -> Expr:
    return Call(operator.gt, (Call(builtins.abs, (x,), (), FLOAT), Const(1.0)), (), BOOL)


def _outside_open_one(x: Expr) -> Expr:
    return Call(operator.ge, (Call(builtins.abs, (x,), (), FLOAT), Const(1.0)), (), BOOL)


def _infinite(x: Expr) -> Expr:
    return Call(math.isinf, (x,), (), BOOL)


def _pole(x: Expr) -> Expr:
    """Zero or a negative integer."""
    low = Call(operator.le, (x, Const(0.0)), (), BOOL)
    whole = Call(operator.eq, (x, Call(np.floor, (x,), (), FLOAT)), (), BOOL)
    return Call(intrinsics.and_, (low, whole), (), BOOL)


def _no_remainder(x: Expr, y: Expr) -> Expr:
    """An infinite value, or a divisor of 0; NaN gives NaN."""
    infinite = Call(intrinsics.and_, (_infinite(x), Call(operator.eq, (y, y), (), BOOL)), (), BOOL)
    zero = Call(
        intrinsics.and_, (Call(operator.eq, (y, Const(0.0)), (), BOOL), Call(operator.eq, (x, x), (), BOOL)), (), BOOL
    )
    return Call(intrinsics.or_, (infinite, zero), (), BOOL)


DOMAINS: dict[Any, Callable[..., Expr]] = {
    math.sqrt: _test(operator.lt, 0.0),
    math.log: _test(operator.le, 0.0),
    math.log2: _test(operator.le, 0.0),
    math.log10: _test(operator.le, 0.0),
    math.log1p: _test(operator.le, -1.0),
    math.acosh: _test(operator.lt, 1.0),
    math.asin: _outside_one,
    math.acos: _outside_one,
    math.atanh: _outside_open_one,
    math.sin: _infinite,
    math.cos: _infinite,
    math.tan: _infinite,
    math.gamma: _pole,
    math.lgamma: _pole,
    math.fmod: _no_remainder,
}
OVERFLOWS = frozenset(
    {math.exp, math.exp2, math.expm1, math.cosh, math.sinh, math.gamma, math.lgamma, math.ldexp, math.hypot}
)
NUMPY_FOR: dict[Any, Any] = {math.cbrt: np.cbrt, math.fmod: np.fmod}
