"""Integer overflow analysis: integers that may exceed 64 bits, which grow in Python and wrap around in compiled code.

Integers that only become an index, a size or a loop bound are left out: arrays are not that large, and their bounds
are checked anyway.  A value that goes through a tape counts like one that goes through a variable.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Assign, Call, Const, Expr, For, Function, Load, Store, Tuple, Var
from tapegen.ir.types import INT, Array, Scalar, is_floating

ARGUMENT_BITS = 31
"""Magnitude of integer arguments that a program is compiled for, unless a call has larger ones."""

_LIMIT = 9.2e18  # the largest 64-bit integer, with a margin for rounding
_SIZE = 3e9  # the largest extent of an axis
_TRIPS = 2.0**40  # the largest trip count
_SIZES = frozenset({intrinsics.dim, len, np.size, np.ndim})
_ADDITIONS = frozenset({operator.add, operator.sub})
_GROWING = _ADDITIONS | {operator.mul, operator.neg, operator.pow, operator.lshift, builtins.abs}
_SELECTIONS = frozenset({builtins.min, builtins.max, intrinsics.ifelse, operator.neg, operator.pos})


def overflowing(function: Function, *, wide: bool = False) -> frozenset[Call]:
    """The operations on Python integers whose results may not fit into 64 bits and are used as numbers.

    Parameters
    ----------
    function : Function
        A finished function.
    wide : bool
        Whether integer arguments may have 63 bits instead of 31.
    """
    used = _Used(function)
    if not used.calls:
        return frozenset()
    sizes = _Sizes(function, wide, used.calls)
    return frozenset(call for call in used.calls if sizes.exact(call) >= _LIMIT)


def _is_python_int(expr: Any) -> bool:
    return expr.type is INT


# ---- uses as a number ----------------------------------------------------------------------------------------------


class _Used:
    """Integer operations whose values are used as numbers, directly or through integer variables."""

    def __init__(self, function: Function) -> None:
        self.calls: set[Call] = set()
        self._values: dict[Var, list[Expr]] = defaultdict(list)
        self._names: list[Var] = []
        self._seen: set[Var] = set()
        self._tapes = frozenset(function.tapes)
        for stmt in traversal.statements(function.body):
            if isinstance(stmt, Assign):
                for target, value in traversal.pairs(stmt):
                    if _is_python_int(target):
                        self._values[target].append(value)
                    else:
                        self._number(value)
            elif isinstance(stmt, Store):
                if stmt.array in self._tapes:
                    self._values[stmt.array].append(stmt.value)
                else:
                    self._number(stmt.value)
            elif not isinstance(stmt, For):
                for header in stmt.headers:
                    self._number(header)
        while self._names:
            for value in self._values[self._names.pop()]:
                self._number(value)

    def _number(self, expr: Any) -> None:
        work = [expr]
        while work:
            part = work.pop()
            kind = type(part)
            if kind is Var:
                if _is_python_int(part) or part in self._tapes:
                    self._name(part)
            elif kind is Load:
                if part.array in self._tapes:
                    self._name(part.array)
            elif kind is Tuple:
                work += part.items
            elif kind is Call and (type(part.type) is not Array or is_floating(part.type)):
                if _is_python_int(part) and part.func in _GROWING:
                    self.calls.add(part)
                # but for shapes and axes
                work += [each for each in traversal.parts(part) if type(each) is not Tuple and type(each) is not Const]

    def _name(self, var: Var) -> None:
        if var not in self._seen:
            self._seen.add(var)
            self._names.append(var)


# ---- sizes ---------------------------------------------------------------------------------------------------------


class _Sizes:
    """Upper bounds of the absolute values of the integers that some operations depend on."""

    def __init__(self, function: Function, wide: bool, calls: Iterable[Call]) -> None:
        self._of: dict[Var, float] = {}
        definitions: dict[Var, list[Expr]] = defaultdict(list)
        for stmt in traversal.statements(function.body):
            if type(stmt) is Assign:
                for target, value in traversal.pairs(stmt):
                    if _is_python_int(target):
                        definitions[target].append(value)
            elif type(stmt) is For:
                definitions[stmt.target] += [stmt.start, stmt.stop]
        for param in function.params:
            if _is_python_int(param):
                self._of[param] = _LIMIT if wide else 2.0**ARGUMENT_BITS
                if param in definitions:
                    definitions[param].append(Const(int(self._of[param])))
        needs: dict[Var, set[Var]] = {}
        tapes: dict[Var, list[Expr]] | None = None
        work = _mentioned(calls)
        while work:
            var = work.pop()
            if tapes is None and type(var.type) is Array:
                tapes = _tapes(function)
                definitions.update(tapes)
            if var not in needs and var in definitions:
                needs[var] = _mentioned(definitions[var])
                work |= needs[var]
        for cycle in cycles(needs):
            self._cycle(cycle, [value for var in cycle for value in definitions[var]])

    def _cycle(self, names: set[Var], values: list[Expr]) -> None:
        """Bound a dependence cycle of variables: its values stay within a bound, count up, or grow without limit."""
        self._of.update(dict.fromkeys(names, 0.0))
        bound = max(map(self.of, values))
        self._of.update(dict.fromkeys(names, bound))
        if max(map(self.exact, values)) > bound:  # halving an interval, a remainder, a minimum would stay within it
            limit = sum(self._counted(value, names) for value in values)
            self._of.update(dict.fromkeys(names, min(limit, _LIMIT)))

    def _counted(self, value: Expr, names: set[Var]) -> float:
        """The sum over all iterations, if the value is a variable of the cycle plus a step."""
        step = self._step(value, names)
        return _LIMIT if step is None else step[1] * (_TRIPS if step[0] else 1.0)

    def _step(self, value: Any, names: set[Var]) -> tuple[bool, float] | None:
        """The size of the step, if the value is one of the variables plus a step."""
        if (value.array if isinstance(value, Load) else value) in names:  # a tape passes a value on like a variable
            return True, 0.0
        if names.isdisjoint(traversal.free_vars(value)):
            return False, self.of(value)
        if not isinstance(value, Call) or value.func not in _ADDITIONS | _SELECTIONS:
            return None
        parts = [self._step(part, names) for part in value.args[1 if value.func is intrinsics.ifelse else 0 :]]
        known = [part for part in parts if part is not None]
        moved = sum(part[0] for part in known)
        if len(known) < len(parts) or (value.func in _ADDITIONS and moved > 1):
            return None
        combine: Callable[[Iterable[float]], float] = sum if value.func in _ADDITIONS else max
        return moved > 0, combine(part[1] for part in known)

    def of(self, expr: Any) -> float:
        """The size of a value; sizes beyond the limit raise."""
        return min(self.exact(expr), _LIMIT)

    def exact(self, expr: Any) -> float:
        """The size of the mathematical result of an operation."""
        if isinstance(expr, (Var, Load)):
            return self._of.get(expr.array if isinstance(expr, Load) else expr, _LIMIT)
        if isinstance(expr, Const):
            return abs(float(expr.value)) if isinstance(expr.value, (bool, int)) else _LIMIT
        if not isinstance(expr, Call):
            return _LIMIT
        is_bool = isinstance(expr.type, Scalar) and expr.type.dtype == "bool"
        return 1.0 if is_bool else self._call(expr.func, expr.args)

    def _call(self, func: Any, args: tuple[Expr, ...]) -> float:
        if func in _SIZES:
            return _SIZE
        if func in _ADDITIONS and len(args) == 2:
            return sum(map(self.of, args))
        if func is operator.mul:
            return self.of(args[0]) * self.of(args[1])
        if func is operator.floordiv and isinstance(args[1], Const) and isinstance(args[1].value, int):
            return float(math.ceil(self.of(args[0]) / max(abs(args[1].value), 1)))
        if func in (operator.neg, operator.pos, builtins.abs, operator.floordiv, operator.rshift, builtins.int):
            return self.of(args[0]) if _is_integer(args[0]) else _LIMIT
        if func is operator.mod and _is_integer(args[1]):
            return self.of(args[1])
        if func in (builtins.min, builtins.max):
            return max(map(self.of, args))
        if func in (operator.and_, operator.or_, operator.xor):
            return min(2.0 * max(map(self.of, args)), _LIMIT)
        if func is intrinsics.ifelse:
            return max(map(self.of, args[1:]))
        if func in (operator.pow, operator.lshift) and len(args) == 2:
            base, count = self.of(args[0]), args[1]
            if not isinstance(count, Const) or not isinstance(count.value, int) or not 0 <= count.value < 64:
                return math.inf
            if func is operator.lshift:
                return base * 2.0**count.value
            return base**count.value if base < _LIMIT ** (1.0 / max(count.value, 1)) * 2.0 else math.inf
        return _LIMIT


def _is_integer(expr: Expr) -> bool:
    return isinstance(expr.type, Scalar) and (expr.type.dtype == "bool" or "int" in expr.type.dtype)


def _tapes(function: Function) -> dict[Var, list[Expr]]:
    """Integer arrays that the program allocates itself, with the values stored into them."""
    stored: dict[Var, list[Expr]] = defaultdict(list)
    shared = set(function.params)
    for stmt in traversal.statements(function.body):
        if isinstance(stmt, Store):
            stored[stmt.array].append(stmt.value)
        elif isinstance(stmt, Assign):
            for target, value in traversal.pairs(stmt):
                if not isinstance(target.type, Array):
                    continue
                arrays = {var for var in traversal.reads_by_kind(value)[0] if isinstance(var.type, Array)}
                if not (isinstance(value, Call) and arrays <= {target}):
                    shared |= {target, *arrays}
    return {
        array: values
        for array, values in stored.items()
        if array not in shared and isinstance(array.type, Array) and array.type.dtype == "int64"
    }


def _mentioned(values: Iterable[Expr]) -> set[Var]:
    return set().union(*(traversal.free_vars(value) for value in values))


def cycles(needs: Mapping[Var, set[Var]]) -> list[set[Var]]:
    """Strongly connected components of variables, in topological order of dependences (R. Tarjan, 1972)."""
    found: list[set[Var]] = []
    order: dict[Var, int] = {}
    lowest: dict[Var, int] = {}
    stack: list[Var] = []
    waiting: set[Var] = set()

    def visit(var: Var) -> None:
        order[var] = lowest[var] = len(order)
        stack.append(var)
        waiting.add(var)
        for other in sorted(needs[var] & needs.keys(), key=lambda item: item.name):
            if other not in order:
                visit(other)
                lowest[var] = min(lowest[var], lowest[other])
            elif other in waiting:
                lowest[var] = min(lowest[var], order[other])
        if lowest[var] == order[var]:
            group: set[Var] = set()
            while var not in group:
                group.add(stack.pop())
            waiting.difference_update(group)
            found.append(group)

    for var in needs:
        if var not in order:
            visit(var)
    return found
