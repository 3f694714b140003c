"""Interval arithmetic: bounds of the results of functions from bounds of their arguments."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Const, Expr
from tapegen.ir.types import Array, Scalar

FINITE, INFINITE, NAN = range(3)
EXPONENT = 80.0
"""Exponentials of smaller arguments are finite, in single precision as well."""


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a value, and its worst class: finite, infinite or NaN (0, 1, 2)."""

    low: float = -math.inf
    high: float = math.inf
    worst: int = FINITE

    def joined(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high), max(self.worst, other.worst))

    @property
    def bounded(self) -> bool:
        """Whether infinities of one sign only can occur."""
        return self.low > -math.inf or self.high < math.inf


ANY = Range()


def join(found: Iterable[Range | None]) -> Range | None:
    total: Range | None = None
    for one in found:
        if one is not None:
            total = one if total is None else total.joined(one)
    return total


def tiny(call: Call) -> float:
    """The smallest divisor for which the square of the reciprocal is finite."""
    single = isinstance(call.type, (Array, Scalar)) and call.type.dtype == "float32"
    return 1e-12 if single else 1e-50


def is_away(x: Range, tiny: float) -> bool:
    return x.low >= tiny or x.high <= -tiny


def is_small(exponent: Expr) -> bool:
    return isinstance(exponent, Const) and isinstance(exponent.value, (int, float)) and -2 <= exponent.value <= 2


def added(x: Range, y: Range) -> Range:
    low, high = x.low + y.low, x.high + y.high
    both = x.worst == INFINITE == y.worst
    opposite = both and not (min(x.low, y.low) > -math.inf or max(x.high, y.high) < math.inf)
    return Range(low, high, NAN if opposite else max(x.worst, y.worst))


def _difference(x: Range, y: Range) -> Range:
    return added(x, _negative(y))


def _negative(x: Range) -> Range:
    return Range(-x.high, -x.low, x.worst)


def product(x: Range, y: Range) -> Range:
    corners = [_times(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    worst = max(x.worst, y.worst)
    if worst == INFINITE:  # times zero is NaN
        finite = [one for one in (x, y) if one.worst == FINITE]
        worst = INFINITE if all(one.low > 0.0 or one.high < 0.0 for one in finite or (x, y)) else NAN
    return Range(min(corners), max(corners), worst)


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0.0 or b == 0.0 else a * b


def square(x: Range) -> Range:
    ends = sorted((_times(x.low, x.low), _times(x.high, x.high)))
    return Range(0.0 if x.low < 0.0 < x.high else ends[0], ends[1], x.worst)


def _quotient(call: Call, x: Range, y: Range) -> Range:
    if not is_away(y, tiny(call)):
        return Range(worst=NAN)
    worst = max(x.worst, y.worst)
    if worst == INFINITE:
        worst = x.worst if y.worst == FINITE else NAN if x.worst == INFINITE else FINITE
    corners = [_over(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    return Range(min(corners), max(corners), worst)


def _over(a: float, b: float) -> float:
    return 0.0 if math.isinf(b) else a / b


def _exponential(x: Range) -> Range:
    low = math.exp(min(x.low, EXPONENT))
    high = math.exp(x.high) if x.high <= EXPONENT else math.inf
    return Range(low, high, max(x.worst if x.worst == NAN else FINITE, FINITE if high < math.inf else INFINITE))


def _root(x: Range) -> Range:
    high = math.sqrt(max(x.high, 0.0))
    return Range(math.sqrt(max(x.low, 0.0)), high, x.worst if x.low >= 0.0 else NAN)


def _logarithm(call: Call, x: Range) -> Range:
    worst = x.worst if x.low >= tiny(call) else max(x.worst, INFINITE if x.low >= 0.0 else NAN)
    function = {np.log2: math.log2, math.log2: math.log2, np.log10: math.log10, math.log10: math.log10}
    log = function.get(call.func, math.log)
    return Range(log(x.low) if x.low > 0.0 else -math.inf, log(x.high) if x.high > 0.0 else math.inf, worst)


def _power(call: Call, x: Range) -> Range:
    exponent = call.args[1].value if isinstance(call.args[1], Const) else None
    if not isinstance(exponent, (int, float)):
        return Range(worst=NAN)
    if exponent == 2:
        return square(x)
    whole = float(exponent).is_integer()
    if exponent >= 0 and (whole or x.low >= 0.0):
        return Range(0.0 if x.low >= 0.0 or (whole and exponent % 2 == 0) else -math.inf, math.inf, x.worst)
    if x.low >= tiny(call):
        return Range(0.0, math.inf, NAN if x.worst == NAN else FINITE)
    return Range(worst=NAN)


def _magnitude(x: Range) -> Range:
    inner = 0.0 if x.low <= 0.0 <= x.high else min(abs(x.low), abs(x.high))
    return Range(inner, max(abs(x.low), abs(x.high)), x.worst)


def _length(x: Range, y: Range) -> Range:
    x, y = _magnitude(x), _magnitude(y)
    return Range(max(x.low, y.low), x.high + y.high, max(x.worst, y.worst))


def _larger(call: Call, operands: list[Range]) -> Range:
    worst = max(one.worst for one in operands)
    return Range(max(one.low for one in operands), max(one.high for one in operands), worst)


def _smaller(call: Call, operands: list[Range]) -> Range:
    worst = max(one.worst for one in operands)
    return Range(min(one.low for one in operands), min(one.high for one in operands), worst)


def _total(x: Range) -> Range:
    """The sum of any number of values, possibly none."""
    worst = NAN if x.worst == INFINITE and not x.bounded else x.worst
    return Range(0.0 if x.low >= 0.0 else -math.inf, 0.0 if x.high <= 0.0 else math.inf, worst)


def _between(low: float, high: float) -> Callable[[Call, list[Range]], Range]:
    """The range of a function that maps infinity to a bound."""
    return lambda call, operands: Range(low, high, NAN if operands[0].worst == NAN else FINITE)


def _wave(call: Call, operands: list[Range]) -> Range:
    return Range(-1.0, 1.0, NAN if operands[0].worst else FINITE)


def _chosen(call: Call, operands: list[Range]) -> Range:
    found = join(operands[1:])
    return ANY if found is None else found


def _of_one(bound: Callable[[Range], Range]) -> Callable[[Call, list[Range]], Range]:
    return lambda call, operands: bound(operands[0])


def _of_two(bound: Callable[[Range, Range], Range]) -> Callable[[Call, list[Range]], Range]:
    return lambda call, operands: bound(operands[0], operands[1])


PRODUCTS = frozenset({operator.mul, np.multiply})
DIVISIONS = frozenset({operator.truediv, np.divide})
ROOTS = frozenset({np.sqrt, math.sqrt})
LOGARITHMS = frozenset({np.log, np.log2, np.log10, math.log, math.log2, math.log10})
EXPONENTIALS = frozenset({np.exp, math.exp})
POWERS = frozenset({operator.pow, np.power, math.pow})
_SAME = frozenset(
    {
        *(np.copy, np.reshape, np.ravel, np.transpose, np.asarray, np.ascontiguousarray, np.array, np.broadcast_to),
        *(np.max, np.min, np.amax, np.amin, np.mean, np.positive, operator.pos, builtins.float, np.float64),
        *(np.concatenate, np.stack, np.flip, np.squeeze),
    }
)
BOUNDS: dict[Any, Callable[[Call, list[Range]], Range]] = {
    **dict.fromkeys(_SAME, lambda call, operands: operands[0]),
    **dict.fromkeys((operator.add, np.add), _of_two(added)),
    **dict.fromkeys((operator.sub, np.subtract), _of_two(_difference)),
    **dict.fromkeys(PRODUCTS, _of_two(product)),
    **dict.fromkeys(DIVISIONS, lambda call, operands: _quotient(call, operands[0], operands[1])),
    **dict.fromkeys((operator.neg, np.negative), _of_one(_negative)),
    **dict.fromkeys(EXPONENTIALS, _of_one(_exponential)),
    **dict.fromkeys(ROOTS, _of_one(_root)),
    **dict.fromkeys(LOGARITHMS, lambda call, operands: _logarithm(call, operands[0])),
    **dict.fromkeys(POWERS, lambda call, operands: _power(call, operands[0])),
    **dict.fromkeys((np.abs, builtins.abs, math.fabs, np.fabs), _of_one(_magnitude)),
    **dict.fromkeys((np.maximum, builtins.max), _larger),
    **dict.fromkeys((np.minimum, builtins.min), _smaller),
    **dict.fromkeys((np.sum, builtins.sum), _of_one(_total)),
    **dict.fromkeys((np.tanh, math.tanh), _between(-1.0, 1.0)),
    **dict.fromkeys((np.arctan, math.atan), _between(-2.0, 2.0)),
    **dict.fromkeys((np.sin, np.cos, math.sin, math.cos), _wave),
    **dict.fromkeys((np.where, intrinsics.ifelse), _chosen),
    **dict.fromkeys((np.hypot, math.hypot), _of_two(_length)),
    **dict.fromkeys(
        (np.cosh, math.cosh), lambda call, operands: Range(1.0, math.inf, _exponential(_magnitude(operands[0])).worst)
    ),
    np.reciprocal: lambda call, operands: _quotient(call, Range(1.0, 1.0), operands[0]),
    np.square: _of_one(square),
    math.erf: _between(-1.0, 1.0),
    math.erfc: _between(0.0, 2.0),
    np.zeros_like: lambda call, operands: Range(0.0, 0.0),
    np.ones_like: lambda call, operands: Range(1.0, 1.0),
    np.full_like: lambda call, operands: operands[1],
    np.zeros: lambda call, operands: Range(0.0, 0.0),
    np.ones: lambda call, operands: Range(1.0, 1.0),
}
