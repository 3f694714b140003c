"""Elementary functions in loops whose trips are apart: as vector instructions, several trips at once.

The C library's functions take one number, and a loop that calls them takes one trip after the other.  In such a loop
`np.exp` and its like become the functions of `ir.elementary`, which LLVM makes vector instructions of.  Sine and cosine
of numbers far from zero need more than these do: where the program does not say that there are none, a loop in front
counts them, and where it finds one, the loop runs as it was.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapegen.ir import elementary, ops, rewrite
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Comment, Const, Expr, For, If, Stmt, Store, Var
from tapegen.ir.types import BOOL, INT, Scalar


@dataclass(frozen=True)
class Vectors:
    """The trips of a loop in another form.

    Attributes
    ----------
    body : tuple of Stmt
        A trip with functions that become vector instructions.
    far : tuple of Stmt
        What a trip does to count the numbers that are too far from zero for that; nothing where none can be.
    count : Var or None
        What it counts with.
    """

    body: Block
    far: Block = ()
    count: Var | None = None

    def loops(self, before: Block, loop: Callable[[Block], For]) -> list[Stmt]:
        """The loop with such functions, or, where a loop in front finds numbers far from zero, the one without.

        Parameters
        ----------
        before : tuple of Stmt
            A trip as it was.
        loop : callable
            Makes a loop of a trip.
        """
        quick = loop(self.body)
        if self.count is None:
            return [quick]
        slow = loop(tuple(replace(stmt) for stmt in before if not isinstance(stmt, Comment)))
        counting = loop(tuple(replace(stmt) for stmt in self.far))
        found = Call(operator.gt, (self.count, Const(0)), (), BOOL)
        return [Assign((self.count,), Const(0), quick.origin), counting, If(found, (slow,), (quick,), quick.origin)]


def vectors(body: Block, exact: Callable[[Var], bool], names: NameSupply) -> Vectors | None:
    """The trips of a loop, which are apart but for sums, with functions for vector instructions.

    None where a trip calls no function that has such a form, or one that keeps LLVM from making vector instructions.

    Parameters
    ----------
    body : tuple of Stmt
        A trip.
    exact : callable
        Whether what a name holds must not change in its last place: the same value may be worked out elsewhere by the
        C library.
    names : NameSupply
        Where new names come from.
    """
    called = frozenset().union(*map(rewrite.calls, body))
    if VECTORS.keys().isdisjoint(called) or not called <= VECTORS.keys() | _PLAIN:
        return None
    made = _made(body)
    stored = {stmt.array for stmt in body if isinstance(stmt, Store)}
    left = [stmt for stmt in body if any(exact(var) for var in _results(stmt))]
    far: list[Expr] = []
    for stmt in body:
        for (angle,) in () if stmt in left else [part.args for part in _parts(stmt) if part.func in _PERIODIC]:
            always = _CONDITIONAL.isdisjoint(rewrite.calls(stmt)) or not rewrite.loads(angle)
            if _bound(angle, made) > elementary.LARGEST_ANGLE and always and _may_be_counted(angle, made, stored):
                far.append(angle)

    def chosen(expr: Any) -> Any:
        if not isinstance(expr, Call) or expr.func not in VECTORS or not _is_float64(expr.args[0]):
            return expr
        (operand, *_) = expr.args
        near = expr.func not in _PERIODIC or operand in far or _bound(operand, made) <= elementary.LARGEST_ANGLE
        return replace(expr, func=VECTORS[expr.func]) if near else expr

    new = tuple(stmt if stmt in left else _changed(stmt, chosen) for stmt in body)
    if _CHOSEN.isdisjoint(frozenset().union(*map(rewrite.calls, new))):
        return None
    if not far:
        return Vectors(new)
    count = Var(names.fresh("far"), INT)
    return Vectors(new, _counting(list(dict.fromkeys(far)), made, body, count), count)


def _changed(stmt: Stmt, change: Callable[[Any], Any]) -> Stmt:
    return rewrite.map_headers(stmt, lambda part: rewrite.map_expr(part, change))


def _results(stmt: Stmt) -> tuple[Var, ...]:
    return (stmt.array,) if isinstance(stmt, Store) else rewrite.defines(stmt)


def _made(body: Block) -> dict[Var, Expr | None]:
    """What the numbers of a trip are made of; None where that is no one expression."""
    made: dict[Var, Expr | None] = {}
    for stmt in body:
        if isinstance(stmt, Assign):
            (target,) = stmt.targets
            made[target] = None if target in made or target in rewrite.free_vars(stmt.value) else stmt.value
    return made


def _parts(stmt: Stmt) -> Iterator[Call]:
    return (part for header in rewrite.headers(stmt) for part in rewrite.subexpressions(header) if _is_call(part))


def _bound(expr: Expr, made: Mapping[Var, Expr | None]) -> float:
    """What the size of a number does not exceed; NaN counts as small."""
    match expr:
        case Const(int() | float() as value):
            return abs(value)
        case Var() if (source := made.get(expr)) is not None:
            return _bound(source, made)
        case Call(func) if func in _AT_MOST_ONE:
            return 1.0
        case Call(operator.neg | builtins.abs, (a,)):
            return _bound(a, made)
        case Call(operator.add | operator.sub, (a, b)):
            return _bound(a, made) + _bound(b, made)
        case Call(operator.mul, (a, b)):
            sizes = _bound(a, made), _bound(b, made)
            return math.inf if math.inf in sizes else sizes[0] * sizes[1]
    return math.inf


def _may_be_counted(expr: Expr, made: Mapping[Var, Expr | None], stored: Set[Var]) -> bool:
    """Whether a number is made of elements that the loop does not write, and by arithmetic alone."""
    work: list[Expr] = [expr]
    while work:
        part = work.pop()
        calls = [inner.func for inner in rewrite.subexpressions(part) if _is_call(inner)]
        if not _ARITHMETIC.issuperset(calls) or any(load.array in stored for load in rewrite.loads(part)):
            return False
        for var in rewrite.free_vars(part) & made.keys():
            value = made[var]
            if value is None:
                return False
            work.append(value)
    return True


def _counting(angles: list[Expr], made: Mapping[Var, Expr | None], body: Block, count: Var) -> Block:
    needed: set[Var] = set()
    work = list(angles)
    while work:
        more = rewrite.free_vars(work.pop()) & made.keys() - needed
        needed |= more
        work += [value for var in more if (value := made[var]) is not None]
    far: Expr = count
    for angle in angles:
        size = Call(builtins.abs, (angle,), (), angle.type)
        far = Call(operator.add, (far, Call(operator.gt, (size, Const(elementary.LARGEST_ANGLE)), (), BOOL)), (), INT)
    before = [stmt for stmt in body if isinstance(stmt, Assign) and stmt.targets[0] in needed]
    return (*before, Assign((count,), far))


def _is_call(part: Any) -> bool:
    return isinstance(part, Call)


def _is_float64(expr: Expr) -> bool:
    return isinstance(expr.type, Scalar) and expr.type.dtype == "float64"


VECTORS: dict[Any, Any] = {
    np.exp: elementary.vexp,
    np.log: elementary.vlog,
    np.log1p: elementary.vlog1p,
    np.sin: elementary.vsin,
    np.cos: elementary.vcos,
    np.tanh: elementary.vtanh,
    math.tanh: elementary.vtanh,
}
"""The functions that have a form for vector instructions; none of them raises an error."""

_CHOSEN = frozenset(VECTORS.values())
_PERIODIC = frozenset({np.sin, np.cos})
_AT_MOST_ONE = frozenset({np.sin, np.cos, np.tanh, math.tanh, elementary.vsin, elementary.vcos, elementary.vtanh})
_CONDITIONAL: frozenset[Any] = frozenset({ops.ifelse, ops.and_, ops.or_})
"""Calls whose operands need not all be looked at: an element among them may be none."""

_ARITHMETIC: frozenset[Any] = frozenset(
    {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, ops.dim}
)
_PLAIN: frozenset[Any] = _ARITHMETIC | {
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.not_),
    *(operator.and_, operator.or_, ops.and_, ops.or_, ops.ifelse, np.sqrt, builtins.abs, builtins.float),
    *(np.maximum, np.minimum, np.isnan, math.isnan, math.fabs),
}
"""What LLVM makes vector instructions of by itself."""
