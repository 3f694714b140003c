"""Rounding-sensitive values: which scalars control flow or indices depend on, and which depend on tangents.

Whether a number is finite does not depend on its last bit, unless it overflows or something that may cancel divides it,
and the sign of a sum of exponentials does not either: `isfinite(logsumexp(x))` makes no number sensitive.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Set
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import (
    Assign,
    Call,
    Const,
    Effect,
    Expr,
    Function,
    If,
    Load,
    Raise,
    Routine,
    Stmt,
    Store,
    Var,
    While,
)
from tapegen.ir.types import Array, Scalar
from tapegen.loops.analysis.dependence import AliasSets, is_call_by_chunks

_KEEPING: frozenset[Any] = frozenset({intrinsics.append, intrinsics.set_item})
"""What puts a value into a list; it decides where an item that is taken from the list decides."""


def deciding(function: Function, memory: AliasSets) -> set[Var]:
    """Variables that control flow or indices may depend on; alias sets for arrays.

    The function caches the result; it must not be modified.
    """
    if deciding not in function.known:
        function.known[deciding] = _deciding(function, memory)
    found: set[Var] = function.known[deciding]
    return found


def _deciding(function: Function, memory: AliasSets) -> set[Var]:
    made_of = _made_of(function, memory)
    exponentials = _exponentials(function)
    robust = _robust_tests(function, made_of, memory)
    found: set[Var] = set(function.deciding)
    for stmt in traversal.statements(function.body):
        if is_call_by_chunks(stmt):
            continue  # `function.deciding` has what the chunks decide on
        if exponentials and (number := overflowing(stmt)) in exponentials:
            # the power also determines whether it overflowed
            found |= _sensitive(stmt.headers[0], robust) - {number}
            continue
        if isinstance(stmt, Assign) and all(_is_float(target.type) for target in stmt.targets):
            found |= _decides(stmt.value, robust)
        elif isinstance(stmt, Assign) and (guarded := _compared_with_zero(stmt.value)) is not None:
            # what reads the outcome decides, unless it guards a product
            found = found.union(*(_decides(part, robust) for part in guarded))
        elif isinstance(stmt, (Assign, If, While)) or (isinstance(stmt, Effect) and stmt.call.func not in _KEEPING):
            found |= _sensitive(stmt.headers[0], robust)
        else:
            for part in stmt.headers:
                found |= _decides(part, robust)
    work = {memory.group(var) for var in found}
    found = set()
    while work:
        var = work.pop()
        found.add(var)
        for value in made_of.get(var, ()):
            work.update(memory.groups(_sensitive(value, robust)))
        work -= found
    return found


def overflowing(stmt: Stmt) -> Var | None:
    """The scalar that a statement checks for overflow."""
    match stmt:
        case If(test, (Raise(),), ()):
            match test:
                case Call(math.isinf, (Var() as number,)) | Call(
                    intrinsics.and_, (Call(math.isinf, (Var() as number,)), *_)
                ):
                    return number
    return None


def _exponentials(function: Function) -> set[Var]:
    """Variables that only `math.exp` defines."""
    if not any(math.exp in traversal.calls(stmt) for stmt in function.body):
        return set()
    found: dict[Var, bool] = {}
    for stmt in traversal.statements(function.body):
        of_exp = isinstance(stmt, Assign) and isinstance(stmt.value, Call) and stmt.value.func is math.exp
        for var in stmt.targets:
            found[var] = of_exp and found.get(var, True)
    return {var for var, of_exp in found.items() if of_exp}


def following(function: Function, memory: AliasSets) -> set[Var]:
    """Variables whose value depends on given tangents; alias sets for arrays."""
    leads_to: dict[Var, set[Var]] = {}
    for made, values in _made_of(function, memory).items():
        for value in values:
            for source in memory.groups(_contents(value)):
                leads_to.setdefault(source, set()).add(made)
    work = {memory.group(tangent) for _, tangent in function.tangents}
    found: set[Var] = set()
    while work:
        var = work.pop()
        found.add(var)
        work |= leads_to.get(var, set()) - found
    return found


def _made_of(function: Function, memory: AliasSets) -> dict[Var, list[Expr]]:
    """For each variable, the variables its values come from; alias sets for arrays."""
    found: defaultdict[Var, list[Expr]] = defaultdict(list)
    for stmt in traversal.statements(function.body):
        if isinstance(stmt, Assign):
            for target in stmt.targets:
                found[memory.group(target)].append(stmt.value)
        elif isinstance(stmt, Store):
            found[memory.group(stmt.array)].append(stmt.value)
        elif isinstance(stmt, Effect) and stmt.call.func in _KEEPING:
            sequence, *_, value = stmt.call.args
            found[memory.group(sequence)].append(value)  # type: ignore[arg-type]
    return found


def _decides(part: Any, robust: Collection[Call]) -> set[Var]:
    """What conditions, integers and steps in an expression depend on."""
    found: set[Var] = set()
    called = traversal.callees(part)
    if not called:
        return found
    if intrinsics.ifelse not in called:  # the operands of a control-relevant call are control-relevant too
        nodes = traversal.subexpressions(part)
        return found.union(*(_sensitive(node, robust) for node in nodes if _is_decision(node)))
    work = [part]
    while work:
        node = work.pop()
        if _is_decision(node):
            found |= _sensitive(node, robust)
        elif type(node) is not Call:
            work += traversal.parts(node)
        elif node.func is intrinsics.ifelse and (operands := _beside_zero(node)):
            work += operands
        else:
            work += node.args
    return found


def _beside_zero(choice: Call) -> tuple[Expr, ...]:
    """The scalars and the other factor of a product that is zero where these are, or of such a quotient."""
    match choice.args:
        case test, value, Const(0.0) if (numbers := _compared_with_zero(test)) is not None:
            return *numbers, value
        case Call(operator.eq, (number, Const(0.0))), Const(1.0), value:
            return number, value
    return ()


def _compared_with_zero(test: Expr) -> tuple[Expr, ...] | None:
    """The scalars one of which is not zero where a condition holds, besides those of other such conditions."""
    match test:
        case Call(operator.ne, (number, Const(0.0))) if _is_float(number.type):
            return (number,)
        case Call(operator.or_, (first, second)):
            one, other = _compared_with_zero(first), _compared_with_zero(second)
            return None if one is None or other is None else one + other
        case Var(_, Scalar("bool")):
            return ()
    return None


def _is_decision(node: Any) -> bool:
    """Whether an operation or a condition in an expression decides what another one computes."""
    if type(node) is Call:
        return not _is_float(node.type) or node.func in _STEPS or isinstance(node.func, Routine)
    return type(node) is Var and isinstance(node.type, Scalar) and node.type.dtype == "bool"


def _sensitive(expr: Any, robust: Collection[Call]) -> Set[Var]:
    """What an expression reads, except in tests that do not depend on rounding."""
    if not robust or _TESTS.isdisjoint(traversal.callees(expr)):
        return _contents(expr)
    return _contents(traversal.map_expr(expr, lambda node: Const(True) if node in robust else node))


def _robust_tests(function: Function, made_of: Mapping[Var, list[Expr]], memory: AliasSets) -> set[Call]:
    """The tests for finite numbers, NaN and signs that do not depend on rounding."""
    origin = _Origin(function, made_of, memory)
    found: dict[Call, bool] = {}
    for stmt in traversal.statements(function.body):
        for header in stmt.headers:
            if _TESTS.isdisjoint(traversal.callees(header)):
                continue
            for part in traversal.subexpressions(header):
                if isinstance(part, Call) and part.func in _TESTS and part not in found:
                    found[part] = not origin.has_pole(part)
    return {test for test, is_robust in found.items() if is_robust}


class _Origin:
    """How numbers are computed."""

    def __init__(self, function: Function, made_of: Mapping[Var, list[Expr]], memory: AliasSets) -> None:
        self.arguments = {memory.group(param) for param in function.params}
        self.made_of = made_of
        self.memory = memory

    def has_pole(self, value: Any) -> bool:
        """Whether rounding may decide that a number is infinite or NaN, or the outcome of a test."""
        return self._any(value, self._may_be_pole)

    def cancels(self, value: Any) -> bool:
        """Whether a number may be close to zero because others cancel."""
        return self._any(value, self._may_cancel)

    def _may_be_pole(self, value: Any) -> bool | tuple[Any, ...]:
        match value:
            case Const() | Var() | Load() | Call(np.empty | np.zeros):
                return False
            case Call(operator.truediv, (a, b)):
                return self.cancels(b) or (a, b)
            case Call(np.log | math.log | np.log1p | math.log1p | np.sqrt | math.sqrt, (a,)):
                return self.cancels(a) or (a,)
            case Call(operator.pow, (a, Const(int() | float() as power))) if power >= 1:
                return (a,)
            case Call(func, args) if func in _WITHOUT_POLES:
                return args
            case Call(func, (a, Const(0.0))) if func in _SIGNS and _is_float(a.type):
                return self.cancels(a) or (a,)
        return True

    def _may_cancel(self, value: Any) -> bool | tuple[Any, ...]:
        match value:
            case Const(int() | float() | np.floating() as number):
                return bool(number < 0)
            case Var() | Load():
                group = self._group(value)
                return group in self.arguments or group not in self.made_of
            case Call(np.exp | math.exp | np.empty | np.zeros):
                return False
            case Call(operator.add | operator.mul | np.sqrt | math.sqrt, args):
                return args
        return True

    def _any(self, value: Any, ask: Callable[[Any], bool | tuple[Any, ...]]) -> bool:
        """Whether this holds for a number or for one that it is computed from; `ask` says which of these matter."""
        work, seen = [value], set[Var]()
        while work:
            part = work.pop()
            found = ask(part)
            if found is True:
                return True
            work += found or ()
            if isinstance(part, (Var, Load)) and (var := self._group(part)) not in seen:
                seen.add(var)
                work += self.made_of.get(var, ())
        return False

    def _group(self, value: Var | Load) -> Var:
        return self.memory.group(value if isinstance(value, Var) else value.array)


def _contents(expr: Any) -> Set[Var]:
    return traversal.contents_read(expr)


def _is_float(type_: Any) -> bool:
    return isinstance(type_, (Scalar, Array)) and type_.dtype in ("float64", "float32")


_CLASSES: frozenset[Any] = frozenset({np.isfinite, np.isnan, np.isinf, math.isfinite, math.isnan, math.isinf})
_SIGNS: frozenset[Any] = frozenset({operator.lt, operator.le, operator.gt, operator.ge})
_TESTS = _CLASSES | _SIGNS
_WITHOUT_POLES: frozenset[Any] = _CLASSES | {
    *(
        operator.add,
        operator.sub,
        operator.mul,
        operator.neg,
        abs,
        np.exp,
        math.exp,
        np.tanh,
        np.maximum,
        np.minimum,
        np.dot,
    ),
    *(intrinsics.ifelse, intrinsics.and_, intrinsics.or_, operator.not_),
}
_STEPS: frozenset[Any] = frozenset(
    {operator.mod, operator.floordiv, np.mod, np.fmod, math.fmod, np.floor_divide, math.copysign, np.copysign}
    | {np.sign, np.floor, np.ceil, np.rint, np.round, np.trunc, np.heaviside}
)
