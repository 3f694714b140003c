"""Between which bounds the values of a program lie, and which of them may be infinite or NaN.

An abstract interpretation over intervals, once per name and per place in memory, whatever the order of the statements.
Arguments are taken to be finite, and sums and products of finite numbers too: what is looked for are poles, roots of
negative numbers and exponentials that overflow.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen.analysis.places import components
from tapegen.ir import ops, rewrite
from tapegen.ir.nodes import Assign, Call, Const, Effect, Expr, Function, Load, Routine, Stmt, Store, Tuple, Var
from tapegen.ir.types import Array, Scalar, is_complex, is_floating
from tapegen.rules.registry import rule_of

_FINITE, _INFINITE, _NAN = range(3)
_ROUNDS = 3
"""How often bounds may move before they are given up: those of a loop may move for ever."""
_EXPONENT = 80.0
"""Exponentials of what is below are finite, in single precision as well."""


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a value, and the worst that it may be: finite, infinite or NaN (0, 1, 2)."""

    low: float = -math.inf
    high: float = math.inf
    worst: int = _FINITE

    def joined(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high), max(self.worst, other.worst))

    @property
    def bounded(self) -> bool:
        """Whether infinities of one sign only can occur."""
        return self.low > -math.inf or self.high < math.inf


_ANY = Range()


class Ranges:
    """Facts of `ranges_of`."""

    def __init__(self, function: Function) -> None:
        self._group_of = components(function)
        self._of: dict[Any, Range] = {}
        inside = [stmt for stmt in rewrite.statements(function.body) if isinstance(stmt, Assign | Store | Effect)]
        self._given = {self._key(param) for param in function.params}
        self._assigned = {self._key(var) for stmt in inside for var in _changed(stmt)}
        self._stored = {self._key(stmt.array) for stmt in inside if isinstance(stmt, Store)}
        self._definitions = _definitions(inside)
        self._changed: dict[Any, int] = {}
        self._time = 1
        self._interpret(inside)

    def _interpret(self, inside: list[Assign | Store | Effect]) -> None:
        """Take in every statement, and again where what it reads has changed since."""
        read = [set(map(self._key, rewrite.reads(stmt) | set(_changed(stmt)))) for stmt in inside]
        seen = [0] * len(inside)
        turn, moving = 0, True
        while moving:
            moving = False
            for k, stmt in enumerate(inside):
                if seen[k] and all(self._changed.get(key, 0) <= seen[k] for key in read[k]):
                    continue
                seen[k] = self._time
                self._time += 1
                self._statement(stmt, widen=turn >= _ROUNDS)
                moving = True
            turn += 1

    def is_wild(self, var: Var) -> bool:
        """Whether a value may be infinite or NaN."""
        found = self.of(var)
        return found is not None and found.worst > _FINITE

    def of(self, expr: Any) -> Range | None:
        """The range of an operand; None where nothing has been computed yet."""
        match expr:
            case Const(bool() | int() | float() as value):
                value = float(value)
                if math.isnan(value):
                    return Range(worst=_NAN)
                return Range(value, value, _INFINITE if math.isinf(value) else _FINITE)
            case Var() | Load():
                if not is_floating(expr.type):
                    return _ANY
                key = self._key(expr.array if isinstance(expr, Load) else expr)
                known = self._of.get(key)
                if key in self._assigned and key not in self._given:
                    return known
                return _ANY if known is None else known.joined(_ANY)
            case Tuple(items):
                return _join(map(self.of, items))
            case Call():
                return self._call(expr)
        return _ANY

    def has_finite_partials(self, call: Call) -> bool:
        """Whether the bounds of its operands keep a call away from the points where its derivative is not finite."""
        found = [self.of(arg) for arg in call.args]
        if any(operand is None or operand.worst == _NAN for operand in found) or _meets_complex(call):
            return False
        x, *rest = (operand for operand in found if operand is not None)
        tiny = _tiny(call)
        if call.func in _DIVISIONS:
            return x.worst == _FINITE and _is_away(rest[0], tiny)
        if call.func in _ROOTS or call.func in _LOGARITHMS:
            return len(found) == 1 and x.low >= tiny
        if call.func in _EXPONENTIALS:
            return x.high <= _EXPONENT
        return call.func in _POWERS and x.worst == _FINITE and x.low >= tiny and _is_small(call.args[1])

    # ---- statements --------------------------------------------------------------------------------------------------

    def _key(self, var: Var) -> Any:
        return self._group_of.get(var, var)

    def _statement(self, stmt: Stmt, *, widen: bool) -> None:
        match stmt:
            case Assign(targets, Tuple(items)) if len(items) == len(targets):
                for target, item in zip(targets, items, strict=True):
                    self._put(target, self.of(item), widen)
            case Assign((target,), value):
                self._put(target, self.of(value), widen)
            case Assign(targets, value):
                found = self.of(value)
                for target in targets:
                    self._put(target, None if found is None else Range(worst=found.worst), widen)
            case Store(array, _, value):
                found = self.of(value)
                held = self.of(array)
                if stmt.accumulate and found is not None:
                    found = None if held is None else _sum(held, found)
                self._put(array, found, widen)
            case Effect(Call(ops.append | ops.set_item, (Var() as sequence, *_, value))):
                self._put(sequence, self.of(value), widen)

    def _put(self, var: Var, found: Range | None, widen: bool) -> None:
        if found is None or not is_floating(var.type):
            return
        key = self._key(var)
        held = self._of.get(key)
        new = found if held is None else held.joined(found)
        if widen and held is not None:
            low = new.low if new.low >= held.low else -math.inf
            high = new.high if new.high <= held.high else math.inf
            new = Range(low, high, new.worst)
        if new != held:
            self._of[key] = new
            self._changed[key] = self._time

    # ---- calls -------------------------------------------------------------------------------------------------------

    def _call(self, call: Call) -> Range | None:
        if not is_floating(call.type):
            return _ANY
        found = [self.of(arg) for arg in call.args]
        further = [self.of(value) for name, value in call.kwargs if name not in _SHAPING]
        found += further
        if any(operand is None for operand in found):
            return None
        operands = [operand for operand in found if operand is not None]
        if isinstance(call.func, Routine):
            return Range(worst=_NAN)
        raises = isinstance(call.type, Scalar) and call.type.python
        bound = _BOUNDS.get(call.func)
        worst = max((operand.worst for operand in operands), default=_FINITE)
        if bound is not None and not further and not _meets_complex(call):
            new = self._product(call, operands) if call.func in _PRODUCTS else bound(call, operands)
            return Range(new.low, new.high, _FINITE) if raises and worst == _FINITE else new
        rule = rule_of(call.func)
        wild = worst > _FINITE or (rule is not None and not raises and (rule.nonfinite or rule.poles))
        return Range(worst=_NAN if wild else _FINITE)

    def _product(self, call: Call, operands: list[Range]) -> Range:
        x, y = operands
        if call.args[0] == call.args[1]:
            return _square(x)
        new = _product(x, y)
        (sign, factor), (other_sign, other) = map(self._signed, call.args)
        if factor != other or isinstance(factor, Const):
            return new
        same = sign == other_sign  # `-x * x` is (-x) * x
        return Range(0.0 if same else new.low, new.high if same else 0.0, x.worst)

    def _signed(self, expr: Expr) -> tuple[bool, Expr]:
        """What a value is a multiple of, and whether a negative one."""
        negative = False
        while isinstance(expr, Var) and (value := self._definitions.get(expr)) is not None:
            match value:
                case Call(operator.neg | np.negative, (inner,)):
                    negative = not negative
                case Call(operator.mul | np.multiply, (Const(int() | float() as factor), inner)) if factor != 0:
                    negative = negative != (factor < 0)
                case Load(array) if self._key(array) not in self._stored:
                    return negative, value
                case _:
                    break
            expr = inner
        return negative, expr


def ranges_of(function: Function) -> Ranges:
    """Find the bounds of the floating values of a lowered program."""
    return Ranges(function)


def _changed(stmt: Stmt) -> Iterable[Var]:
    match stmt:
        case Assign(targets):
            return targets
        case Store(array):
            return (array,)
        case Effect(Call(_, (Var() as sequence, *_))):
            return (sequence,)
    return ()


def _definitions(inside: Iterable[Stmt]) -> dict[Var, Expr]:
    """The values of the names that are assigned once."""
    assigned: Counter[Var] = Counter()
    found: dict[Var, Expr] = {}
    for stmt in inside:
        if isinstance(stmt, Assign):
            assigned.update(stmt.targets)
            found[stmt.targets[0]] = stmt.value
    return {var: value for var, value in found.items() if assigned[var] == 1 and not isinstance(value, Tuple)}


def _join(found: Iterable[Range | None]) -> Range | None:
    total: Range | None = None
    for one in found:
        if one is not None:
            total = one if total is None else total.joined(one)
    return total


def _meets_complex(call: Call) -> bool:
    return any(is_complex(part.type) for part in (call, *call.args))


def _tiny(call: Call) -> float:
    """What a divisor must reach so that the square of its reciprocal is finite."""
    single = isinstance(call.type, Array | Scalar) and call.type.dtype == "float32"
    return 1e-12 if single else 1e-50


def _is_away(x: Range, tiny: float) -> bool:
    return x.low >= tiny or x.high <= -tiny


def _is_small(exponent: Expr) -> bool:
    return isinstance(exponent, Const) and isinstance(exponent.value, int | float) and -2 <= exponent.value <= 2


# ---- bounds of the results of functions ----------------------------------------------------------------------------


def _sum(x: Range, y: Range) -> Range:
    low, high = x.low + y.low, x.high + y.high
    both = x.worst == _INFINITE == y.worst
    opposite = both and not (min(x.low, y.low) > -math.inf or max(x.high, y.high) < math.inf)
    return Range(low, high, _NAN if opposite else max(x.worst, y.worst))


def _difference(x: Range, y: Range) -> Range:
    return _sum(x, _negative(y))


def _negative(x: Range) -> Range:
    return Range(-x.high, -x.low, x.worst)


def _product(x: Range, y: Range) -> Range:
    corners = [_times(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    worst = max(x.worst, y.worst)
    if worst == _INFINITE:  # times zero is NaN
        finite = [one for one in (x, y) if one.worst == _FINITE]
        worst = _INFINITE if all(one.low > 0.0 or one.high < 0.0 for one in finite or (x, y)) else _NAN
    return Range(min(corners), max(corners), worst)


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0.0 or b == 0.0 else a * b


def _square(x: Range) -> Range:
    ends = sorted((_times(x.low, x.low), _times(x.high, x.high)))
    return Range(0.0 if x.low < 0.0 < x.high else ends[0], ends[1], x.worst)


def _quotient(call: Call, x: Range, y: Range) -> Range:
    if not _is_away(y, _tiny(call)):
        return Range(worst=_NAN)
    worst = max(x.worst, y.worst)
    if worst == _INFINITE:
        worst = x.worst if y.worst == _FINITE else _NAN if x.worst == _INFINITE else _FINITE
    corners = [_over(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    return Range(min(corners), max(corners), worst)


def _over(a: float, b: float) -> float:
    return 0.0 if math.isinf(b) else a / b


def _exponential(x: Range) -> Range:
    low = math.exp(min(x.low, _EXPONENT))
    high = math.exp(x.high) if x.high <= _EXPONENT else math.inf
    return Range(low, high, max(x.worst if x.worst == _NAN else _FINITE, _FINITE if high < math.inf else _INFINITE))


def _catenary(x: Range) -> Range:
    return Range(1.0, math.inf, _exponential(_magnitude(x)).worst)


def _root(x: Range) -> Range:
    high = math.sqrt(max(x.high, 0.0))
    return Range(math.sqrt(max(x.low, 0.0)), high, x.worst if x.low >= 0.0 else _NAN)


def _logarithm(call: Call, x: Range) -> Range:
    worst = x.worst if x.low >= _tiny(call) else max(x.worst, _INFINITE if x.low >= 0.0 else _NAN)
    function = {np.log2: math.log2, math.log2: math.log2, np.log10: math.log10, math.log10: math.log10}
    log = function.get(call.func, math.log)
    return Range(log(x.low) if x.low > 0.0 else -math.inf, log(x.high) if x.high > 0.0 else math.inf, worst)


def _power(call: Call, x: Range) -> Range:
    exponent = call.args[1].value if isinstance(call.args[1], Const) else None
    if not isinstance(exponent, int | float):
        return Range(worst=_NAN)
    if exponent == 2:
        return _square(x)
    whole = float(exponent).is_integer()
    if exponent >= 0 and (whole or x.low >= 0.0):
        return Range(0.0 if x.low >= 0.0 or (whole and exponent % 2 == 0) else -math.inf, math.inf, x.worst)
    if x.low >= _tiny(call):
        return Range(0.0, math.inf, _NAN if x.worst == _NAN else _FINITE)
    return Range(worst=_NAN)


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
    """The sum of any number of values, none as well."""
    worst = _NAN if x.worst == _INFINITE and not x.bounded else x.worst
    return Range(0.0 if x.low >= 0.0 else -math.inf, 0.0 if x.high <= 0.0 else math.inf, worst)


def _between(low: float, high: float) -> Callable[[Call, list[Range]], Range]:
    """Of a function that takes infinity to a bound."""
    return lambda call, operands: Range(low, high, _NAN if operands[0].worst == _NAN else _FINITE)


def _wave(call: Call, operands: list[Range]) -> Range:
    return Range(-1.0, 1.0, _NAN if operands[0].worst else _FINITE)


def _chosen(call: Call, operands: list[Range]) -> Range:
    found = _join(operands[1:])
    return _ANY if found is None else found


def _of_one(bound: Callable[[Range], Range]) -> Callable[[Call, list[Range]], Range]:
    return lambda call, operands: bound(operands[0])


def _of_two(bound: Callable[[Range, Range], Range]) -> Callable[[Call, list[Range]], Range]:
    return lambda call, operands: bound(operands[0], operands[1])


_PRODUCTS = frozenset({operator.mul, np.multiply})
_DIVISIONS = frozenset({operator.truediv, np.divide})
_ROOTS = frozenset({np.sqrt, math.sqrt})
_LOGARITHMS = frozenset({np.log, np.log2, np.log10, math.log, math.log2, math.log10})
_EXPONENTIALS = frozenset({np.exp, math.exp})
_POWERS = frozenset({operator.pow, np.power, math.pow})
_SHAPING = frozenset({"axis", "keepdims", "dtype"})
_SAME = frozenset(
    {
        *(np.copy, np.reshape, np.ravel, np.transpose, np.asarray, np.ascontiguousarray, np.array, np.broadcast_to),
        *(np.max, np.min, np.amax, np.amin, np.mean, np.positive, operator.pos, builtins.float, np.float64),
        *(np.concatenate, np.stack, np.flip, np.squeeze),
    }
)
_BOUNDS: dict[Any, Callable[[Call, list[Range]], Range]] = {
    **dict.fromkeys(_SAME, lambda call, operands: operands[0]),
    **dict.fromkeys((operator.add, np.add), _of_two(_sum)),
    **dict.fromkeys((operator.sub, np.subtract), _of_two(_difference)),
    **dict.fromkeys(_PRODUCTS, _of_two(_product)),
    **dict.fromkeys(_DIVISIONS, lambda call, operands: _quotient(call, operands[0], operands[1])),
    **dict.fromkeys((operator.neg, np.negative), _of_one(_negative)),
    **dict.fromkeys(_EXPONENTIALS, _of_one(_exponential)),
    **dict.fromkeys(_ROOTS, _of_one(_root)),
    **dict.fromkeys(_LOGARITHMS, lambda call, operands: _logarithm(call, operands[0])),
    **dict.fromkeys(_POWERS, lambda call, operands: _power(call, operands[0])),
    **dict.fromkeys((np.abs, builtins.abs, math.fabs, np.fabs), _of_one(_magnitude)),
    **dict.fromkeys((np.maximum, builtins.max), _larger),
    **dict.fromkeys((np.minimum, builtins.min), _smaller),
    **dict.fromkeys((np.sum, builtins.sum), _of_one(_total)),
    **dict.fromkeys((np.tanh, math.tanh), _between(-1.0, 1.0)),
    **dict.fromkeys((np.arctan, math.atan), _between(-2.0, 2.0)),
    **dict.fromkeys((np.sin, np.cos, math.sin, math.cos), _wave),
    **dict.fromkeys((np.where, ops.ifelse), _chosen),
    **dict.fromkeys((np.hypot, math.hypot), _of_two(_length)),
    **dict.fromkeys(
        (np.cosh, math.cosh), lambda call, operands: Range(1.0, math.inf, _exponential(_magnitude(operands[0])).worst)
    ),
    np.reciprocal: lambda call, operands: _quotient(call, Range(1.0, 1.0), operands[0]),
    np.square: _of_one(_square),
    math.erf: _between(-1.0, 1.0),
    math.erfc: _between(0.0, 2.0),
    np.zeros_like: lambda call, operands: Range(0.0, 0.0),
    np.ones_like: lambda call, operands: Range(1.0, 1.0),
    np.full_like: lambda call, operands: operands[1],
    np.zeros: lambda call, operands: Range(0.0, 0.0),
    np.ones: lambda call, operands: Range(1.0, 1.0),
}
