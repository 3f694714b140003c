"""Which integers of a program may need more than 64 bits: Python's grow, those of compiled code wrap around.

What only becomes an index, a size or the bound of a loop is left out: arrays are not that large, and their bounds are
checked anyway.
"""

from __future__ import annotations

import builtins
import operator
from collections import defaultdict
from typing import Any

import numpy as np

from tapegen.ir import ops, rewrite
from tapegen.ir.nodes import Assign, Call, Const, Expr, For, Function, Stmt, Store, Tuple, Var
from tapegen.ir.types import Array, Scalar, is_floating

ARGUMENT_BITS = 31
"""Size of the integer arguments that a program is compiled for, unless a call has larger ones."""

_LIMIT = 63
_SIZE = 32  # of an axis
_TRIPS = 40  # how often a counter moves
_ROUNDS = 4  # after which a magnitude that still grows is taken to grow for ever
_SIZES = frozenset({ops.dim, len, np.size, np.ndim})
_ADDITIONS = frozenset({operator.add, operator.sub})


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
    bits = _Bits(function, wide)
    return frozenset(call for call in used.calls if bits.exact(call) > _LIMIT)


def _is_python_int(expr: Any) -> bool:
    return isinstance(expr.type, Scalar) and expr.type.python and expr.type.dtype == "int64"


# ---- what is used as a number --------------------------------------------------------------------------------------


class _Used:
    """Integer operations whose values end up as numbers, directly or through integer names."""

    def __init__(self, function: Function) -> None:
        self.calls: set[Call] = set()
        self._values: dict[Var, list[Expr]] = defaultdict(list)
        self._names: list[Var] = []
        self._seen: set[Var] = set()
        statements = list(rewrite.statements(function.body))
        for stmt in statements:
            if isinstance(stmt, Assign):
                for target, value in _pairs(stmt):
                    if _is_python_int(target):
                        self._values[target].append(value)
        for stmt in statements:
            self._statement(stmt)
        while self._names:
            for value in self._values[self._names.pop()]:
                self._number(value)

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Assign():
                for target, value in _pairs(stmt):
                    if not _is_python_int(target):
                        self._number(value)
            case Store(_, _, value):
                self._number(value)
            case For():
                pass
            case _:
                for header in rewrite.headers(stmt):
                    self._number(header)

    def _number(self, expr: Any) -> None:
        match expr:
            case Var():
                if _is_python_int(expr) and expr not in self._seen:
                    self._seen.add(expr)
                    self._names.append(expr)
            case Tuple(items):
                for item in items:
                    self._number(item)
            case Call(_, args, kwargs):
                if isinstance(expr.type, Array) and not is_floating(expr.type):
                    return
                if _is_python_int(expr):
                    self.calls.add(expr)
                for part in (*args, *(value for _, value in kwargs)):
                    if not isinstance(part, Tuple):  # shapes and axes
                        self._number(part)


def _pairs(stmt: Assign) -> list[tuple[Var, Expr]]:
    if len(stmt.targets) == 1:
        return [(stmt.targets[0], stmt.value)]
    if isinstance(stmt.value, Tuple):
        return list(zip(stmt.targets, stmt.value.items, strict=True))
    return [(target, stmt.value) for target in stmt.targets]


# ---- sizes ---------------------------------------------------------------------------------------------------------


class _Bits:
    """How many bits the integers of a program have at most."""

    def __init__(self, function: Function, wide: bool) -> None:
        self._of: dict[Var, int] = {}
        for param in function.params:
            if _is_python_int(param):
                self._of[param] = _LIMIT if wide else ARGUMENT_BITS
        definitions: dict[Var, list[Expr]] = defaultdict(list)
        for stmt in rewrite.statements(function.body):
            if isinstance(stmt, For):
                definitions[stmt.target] += [stmt.start, stmt.stop]
            elif isinstance(stmt, Assign):
                for target, value in _pairs(stmt):
                    if _is_python_int(target):
                        definitions[target].append(value)
        for target in definitions:
            self._of.setdefault(target, 0)
        count, growing = 0, True
        while growing:
            changes = [self._grows(target, values, count >= _ROUNDS) for target, values in definitions.items()]
            count, growing = count + 1, any(changes)

    def _grows(self, target: Var, values: list[Expr], for_ever: bool) -> bool:
        bits = min(_LIMIT, max(self._step(target, value) for value in values))
        if bits <= self._of[target]:
            return False
        self._of[target] = _LIMIT if for_ever else bits
        return True

    def _step(self, target: Var, value: Expr) -> int:
        """A counter is as large as its step times its trips."""
        match value:
            case Call(func, (a, b)) if func in _ADDITIONS:
                if a == target and target not in rewrite.free_vars(b):
                    return self.of(b) + _TRIPS
                if b == target and func is operator.add and target not in rewrite.free_vars(a):
                    return self.of(a) + _TRIPS
        return self.of(value)

    def of(self, expr: Any) -> int:
        """Bits of a value; what has too many has raised."""
        return min(self.exact(expr), _LIMIT)

    def exact(self, expr: Any) -> int:
        """Bits of the mathematical result of an operation."""
        match expr:
            case Var():
                return self._of.get(expr, _LIMIT)
            case Const(bool() | int() as value):
                return int(value).bit_length()
            case Call(func, args):
                is_bool = isinstance(expr.type, Scalar) and expr.type.dtype == "bool"
                return 1 if is_bool else self._call(func, args)
        return _LIMIT

    def _call(self, func: Any, args: tuple[Expr, ...]) -> int:
        if func in _SIZES:
            return _SIZE
        if func in _ADDITIONS and len(args) == 2:
            return max(map(self.of, args)) + 1
        if func is operator.mul:
            return sum(map(self.of, args))
        if func in (operator.neg, operator.pos, builtins.abs, operator.floordiv, operator.rshift, builtins.int):
            return self.of(args[0]) if _is_integer(args[0]) else _LIMIT
        if func is operator.mod and _is_integer(args[1]):
            return self.of(args[1])
        if func in (builtins.min, builtins.max, operator.and_, operator.or_, operator.xor):
            return max(map(self.of, args))
        if func is ops.ifelse:
            return max(map(self.of, args[1:]))
        if func in (operator.pow, operator.lshift) and len(args) == 2:
            base, count = args
            if not isinstance(count, Const) or not isinstance(count.value, int):
                return _LIMIT + 1
            return self.of(base) * count.value if func is operator.pow else self.of(base) + count.value
        return _LIMIT


def _is_integer(expr: Expr) -> bool:
    return isinstance(expr.type, Scalar) and (expr.type.dtype == "bool" or "int" in expr.type.dtype)
