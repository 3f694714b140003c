"""Cost model of recording a value and of recomputing it, in cycles of compiled code.

The constants are those of no particular machine: 8 bytes that go to main memory and come back take as long as a dozen
additions; arithmetic on the elements of an array takes vector instructions, and the loop in which it is needed anyway.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from tapegen.analysis.scopes import Scope
from tapegen.ir import builders, intrinsics, traversal
from tapegen.ir.nodes import Call, Const, Expr, Load, Routine
from tapegen.ir.types import Array, Scalar, Type

TRIPS = 16
"""Assumed trip count of a loop, and extent of an axis, where nothing is known."""

_RECORD = 12  # to and from memory
_RECORD_FLAG = 4
_RECORD_ELEMENT = 6  # per element of an array, which is copied as a whole
_ARRAY = 24  # a view of a tape, or a new array that loops are fused around
_LANES = 2  # elements that vector instructions process at once
_EXPENSIVE = 30
_UNKNOWN = 10**6  # a recursive function

_COST: dict[Any, int] = {
    operator.truediv: 4,
    np.divide: 4,
    np.sqrt: 5,
    math.sqrt: 5,
    np.copy: 1,
    operator.getitem: 0,
    intrinsics.dim: 0,
    intrinsics.shape: 0,
    np.shape: 0,
    np.size: 0,
    np.ndim: 0,
    len: 0,
}
_UNIT: tuple[Any, ...] = (
    *(operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.floordiv, operator.mod),
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
    *(operator.not_, intrinsics.and_, intrinsics.or_, intrinsics.ifelse, abs, float, int, max, min),
    *(np.zeros, np.ones, np.full, np.eye, np.identity, np.arange, np.zeros_like, np.ones_like, np.full_like),
    *(np.abs, np.square, np.negative, np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.where),
    *(np.fabs, np.positive, np.sign, np.copysign, np.rint, np.floor, np.ceil, np.trunc, np.fmax, np.fmin),
    *(np.isnan, np.isinf, np.isfinite, np.signbit, np.logical_and, np.logical_or, np.logical_not),
    *(math.fabs, math.copysign, math.floor, math.ceil, math.trunc, math.isnan, math.isinf, math.isfinite),
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
)
_COST |= dict.fromkeys(_UNIT, 1)
_COST |= dict.fromkeys((np.sum, np.max, np.min, np.mean, np.prod, np.clip, np.round, round), 2)
_COST |= dict.fromkeys(intrinsics.VIEW_CALLS, 0)


def work(value: Expr) -> int:
    """Work to evaluate an expression once, per element."""
    total = 0
    for part in traversal.subexpressions(value):
        if isinstance(part, Call) and isinstance(part.func, Routine):
            total += _UNKNOWN
        elif isinstance(part, Call):
            total += _power(part) if part.func in (operator.pow, np.power) else _COST.get(part.func, _EXPENSIVE)
        elif isinstance(part, Load):
            total += 1
    return total


def _power(call: Call) -> int:
    """Work of a power: small whole exponents are products, halves of odd integers products with a root."""
    exponent = call.args[1].value if isinstance(call.args[1], Const) else None
    if isinstance(exponent, float) and builders.is_half(exponent):
        return _COST[np.sqrt] + math.floor(abs(exponent)) + (_COST[np.divide] if exponent < 0 else 0)
    return abs(exponent) if isinstance(exponent, int) and abs(exponent) <= 4 else _EXPENSIVE


def of_recording(type_: Type, scope: Scope) -> int:
    """Work to write a value of a scope to a tape and to read it back, over the whole program."""
    if isinstance(type_, Array):
        return frequency(scope) * (_ARRAY + _RECORD_ELEMENT * TRIPS**type_.rank)
    return frequency(scope) * (_RECORD_FLAG if isinstance(type_, Scalar) and type_.dtype == "bool" else _RECORD)


def of_evaluating(value: Expr, scope: Scope) -> int:
    """Work to recompute a value of a scope, over the whole program."""
    once = work(value)
    if not once:
        return 0
    reads, _ = traversal.reads_by_kind(value)
    if isinstance(value, Load):
        reads = set()  # accesses one part alone
    rank = max((type_.rank for type_ in (value.type, *(v.type for v in reads)) if isinstance(type_, Array)), default=0)
    if not rank:
        return frequency(scope) * once
    return frequency(scope) * (-(-once * TRIPS**rank // _LANES) + (_ARRAY // 4 if isinstance(value.type, Array) else 0))


def frequency(scope: Scope) -> int:
    """The estimated number of times that a block runs."""
    return TRIPS ** sum(around.is_loop for around in scope.chain)
