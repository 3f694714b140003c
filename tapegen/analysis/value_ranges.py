"""Value range analysis: bounds of the values of a program, and which of them may be infinite or NaN.

A flow-insensitive abstract interpretation over intervals, one per variable and memory location.  Arguments are assumed
finite, and sums and products of finite numbers too: the analysis finds poles, roots of negative numbers and
exponentials that overflow.  Where the program itself tests whether a value is finite, no such assumption is made for
this value and what it is computed from.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable, Set
from typing import Any

import numpy as np

from tapegen.analysis.interval_arithmetic import (
    ANY,
    BOUNDS,
    DIVISIONS,
    EXPONENT,
    EXPONENTIALS,
    FINITE,
    INFINITE,
    LOGARITHMS,
    NAN,
    POWERS,
    PRODUCTS,
    ROOTS,
    Range,
    added,
    is_away,
    is_small,
    join,
    product,
    square,
    tiny,
)
from tapegen.analysis.memory_access import components
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Assign, Call, Const, Effect, Expr, Function, Load, Routine, Stmt, Store, Tuple, Var
from tapegen.ir.types import Scalar, is_complex, is_floating
from tapegen.rules.registry import rule_of

_ROUNDS = 3
"""Widening: how often bounds may move before they become infinite; bounds in a loop may move for ever."""
_TESTS = frozenset({np.isfinite, np.isinf, np.isnan, math.isfinite, math.isinf, math.isnan, np.nan_to_num})
"""Calls of programs whose values may be infinite or NaN."""
_SHAPING = frozenset({"axis", "keepdims", "dtype"})


class Ranges:
    """Facts of `ranges_of`."""

    def __init__(self, function: Function) -> None:
        self._group_of = components(function)
        self._of: dict[Any, Range] = {}
        inside = [stmt for stmt in traversal.statements(function.body) if isinstance(stmt, (Assign, Store, Effect))]
        self._given = {self._key(param) for param in function.params}
        self._assigned = {self._key(var) for stmt in inside for var in _changed(stmt)}
        self._stored = {self._key(stmt.array) for stmt in inside if isinstance(stmt, Store)}
        self._definitions = _definitions(inside)
        self._changed: dict[Any, int] = {}
        self._time = 1
        self._of.update(dict.fromkeys(self._doubted(inside), Range(worst=NAN)))
        self._interpret(inside)

    def _interpret(self, inside: list[Assign | Store | Effect]) -> None:
        """Interpret every statement, and repeat those whose operands have changed since."""
        read = [set(map(self._key, _read(stmt))) for stmt in inside]
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

    def may_be_nonfinite(self, var: Var) -> bool:
        """Whether a value may be infinite or NaN."""
        found = self.of(var)
        return found is not None and found.worst > FINITE

    def of(self, expr: Any) -> Range | None:
        """The range of an operand; None where nothing has been computed yet."""
        if isinstance(expr, (Var, Load)):
            if not is_floating(expr.type):
                return ANY
            key = self._key(expr.array if isinstance(expr, Load) else expr)
            known = self._of.get(key)
            if key in self._assigned and key not in self._given:
                return known
            return ANY if known is None else known.joined(ANY)
        if isinstance(expr, Call):
            return self._call(expr)
        if isinstance(expr, Tuple):
            return join(map(self.of, expr.items))
        if isinstance(expr, Const) and isinstance(expr.value, (bool, int, float)):
            value = float(expr.value)
            if math.isnan(value):
                return Range(worst=NAN)
            return Range(value, value, INFINITE if math.isinf(value) else FINITE)
        return ANY

    def has_finite_partials(self, call: Call) -> bool:
        """Whether the operands of a call are bounded away from the points where its derivative is not finite."""
        found = [self.of(arg) for arg in call.args]
        if any(operand is None or operand.worst == NAN for operand in found) or _involves_complex(call):
            return False
        x, *rest = (operand for operand in found if operand is not None)
        least = tiny(call)
        if call.func in DIVISIONS:
            return x.worst == FINITE and is_away(rest[0], least)
        if call.func in ROOTS or call.func in LOGARITHMS:
            return len(found) == 1 and x.low >= least
        if call.func in EXPONENTIALS:
            return x.high <= EXPONENT
        return call.func in POWERS and x.worst == FINITE and x.low >= least and is_small(call.args[1])

    def _doubted(self, inside: list[Assign | Store | Effect]) -> set[Any]:
        """The values that the program tests for infinity or NaN, and those that these are computed from."""
        reads: dict[Any, set[Any]] = {}
        found = set[Any]()
        for stmt in inside:
            read = {self._key(var) for var in traversal.values_read(stmt) if is_floating(var.type)}
            for var in _changed(stmt):
                reads.setdefault(self._key(var), set()).update(read)
            for part in (part for header in stmt.headers for part in traversal.subexpressions(header)):
                if isinstance(part, Call) and part.func in _TESTS:
                    found |= {self._key(var) for var in traversal.free_vars(part) if is_floating(var.type)}
        left = list(found)
        while left:
            new = reads.get(left.pop(), set()) - found
            found |= new
            left += new
        return found

    # ---- statements --------------------------------------------------------------------------------------------------

    def _key(self, var: Var) -> Any:
        return self._group_of.get(var, var)

    def _statement(self, stmt: Stmt, *, widen: bool) -> None:
        if isinstance(stmt, Assign):
            several = len(stmt.targets) > 1 and not isinstance(stmt.value, Tuple)
            for target, value in traversal.pairs(stmt):
                found = self.of(value)
                self._set_range(target, Range(worst=found.worst) if several and found is not None else found, widen)
            return
        match stmt:
            case Store(array, _, value):
                found = self.of(value)
                held = self.of(array)
                if stmt.accumulate and found is not None:
                    found = None if held is None else added(held, found)
                self._set_range(array, found, widen)
            case Effect(Call(intrinsics.append | intrinsics.set_item, (Var() as sequence, *_, value))):
                self._set_range(sequence, self.of(value), widen)

    def _set_range(self, var: Var, found: Range | None, widen: bool) -> None:
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
            if key not in self._given or new.worst > (FINITE if held is None else held.worst):
                self._changed[key] = self._time

    # ---- calls -------------------------------------------------------------------------------------------------------

    def _call(self, call: Call) -> Range | None:
        if not is_floating(call.type):
            return ANY
        found = [self.of(arg) for arg in call.args]
        further = [self.of(value) for name, value in call.kwargs if name not in _SHAPING]
        found += further
        if any(operand is None for operand in found):
            return None
        operands = [operand for operand in found if operand is not None]
        if isinstance(call.func, Routine):
            return Range(worst=NAN)
        raises = isinstance(call.type, Scalar) and call.type.python
        bound = BOUNDS.get(call.func)
        worst = max((operand.worst for operand in operands), default=FINITE)
        if bound is not None and not further and not _involves_complex(call):
            new = self._product(call, operands) if call.func in PRODUCTS else bound(call, operands)
            return Range(new.low, new.high, FINITE) if raises and worst == FINITE else new
        rule = rule_of(call.func)
        wild = worst > FINITE or (rule is not None and not raises and (rule.nonfinite or rule.poles))
        return Range(worst=NAN if wild else FINITE)

    def _product(self, call: Call, operands: list[Range]) -> Range:
        x, y = operands
        if call.args[0] == call.args[1]:
            return square(x)
        new = product(x, y)
        (sign, factor), (other_sign, other) = map(self._signed, call.args)
        if factor != other or isinstance(factor, Const):
            return new
        same = sign == other_sign  # `-x * x` is (-x) * x
        return Range(0.0 if same else new.low, new.high if same else 0.0, x.worst)

    def _signed(self, expr: Expr) -> tuple[bool, Expr]:
        """The value without its sign, and whether the sign is negative."""
        negative = False
        while isinstance(expr, Var) and (value := self._definitions.get(expr)) is not None:
            if isinstance(value, Load) and self._key(value.array) not in self._stored:
                return negative, value
            if not isinstance(value, Call):
                break
            match value.func, value.args:
                case ((operator.neg | np.negative), (inner,)):
                    negative = not negative
                case ((operator.mul | np.multiply), (Const(int() | float() as factor), inner)) if factor != 0:
                    negative = negative != (factor < 0)
                case _:
                    break
            expr = inner
        return negative, expr


def ranges_of(function: Function) -> Ranges:
    """Find the bounds of the floating values of a lowered program."""
    return Ranges(function)


def _changed(stmt: Stmt) -> Iterable[Var]:
    if isinstance(stmt, Assign):
        return stmt.targets
    match stmt:
        case Store(array):
            return (array,)
        case Effect(Call(_, (Var() as sequence, *_))):
            return (sequence,)
    return ()


def _read(stmt: Stmt) -> Set[Var]:
    """The values whose bounds determine those of the result."""
    return traversal.reads(stmt) if isinstance(stmt, Store) and stmt.accumulate else traversal.values_read(stmt)


def _definitions(inside: Iterable[Stmt]) -> dict[Var, Expr]:
    """The values of the variables that are assigned once."""
    made = [stmt for stmt in inside if isinstance(stmt, Assign)]
    often = Counter([var for stmt in made for var in stmt.targets])
    return {
        stmt.targets[0]: stmt.value
        for stmt in made
        if often[stmt.targets[0]] == 1 and not isinstance(stmt.value, Tuple)
    }


def _involves_complex(call: Call) -> bool:
    return any(is_complex(part.type) for part in (call, *call.args))
