"""Masked-value analysis: values that a program masks out, whose zero cotangents win over infinite partials.

`np.where(x > 0.0, x * np.log(x), 0.0)` computes the product everywhere and uses it only where `x` is positive.  At zero
its cotangent is 0, and the partial derivative with respect to the first factor is minus infinity.  The analysis finds
the results of such calls, so that the derivative lets the zero win (docs/conventions.md) there and nowhere else.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

from tapegen.analysis.activity import active_operands, closure
from tapegen.analysis.interval_arithmetic import PRODUCTS
from tapegen.analysis.scopes import Scope, Scopes
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import (
    Assign,
    Call,
    Const,
    Expr,
    Function,
    If,
    Load,
    Return,
    Slice,
    Stmt,
    Store,
    Var,
)
from tapegen.ir.types import Array, Scalar

CHOOSING = frozenset(
    {np.where, intrinsics.ifelse, np.select, np.choose, np.maximum, np.minimum, np.fmax, np.fmin, np.clip}
)
CHOOSING |= {builtins.max, builtins.min, np.max, np.min, np.amax, np.amin, np.take, np.diag, np.triu, np.tril, np.sort}
_HANDED_ON = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.matmul),
        *(np.add, np.subtract, np.multiply, np.negative, np.positive, np.matmul, np.dot, np.vdot, np.inner, np.outer),
        *(builtins.sum, np.sum, np.mean, np.copy, np.reshape, np.ravel, np.transpose, np.asarray, np.array),
        *(np.ascontiguousarray, np.concatenate, np.stack, np.broadcast_to, builtins.float, intrinsics.primal_as),
        *(np.sqrt, np.log, np.log2, np.log10, np.log1p, np.sin, np.cos, np.tan, np.sinh, np.cosh, np.square, np.cbrt),
        *(math.sqrt, math.log, math.sin, math.cos, math.tan, np.abs, builtins.abs, math.fabs, np.linalg.norm),
    }
)
"""Functions whose result is infinite or NaN where an operand is, so that they mask nothing out."""

_DIVISIONS = (operator.truediv, np.divide)


def set_aside(function: Function, scopes: Scopes, sources: Mapping[Var, set[Var]], active: Set[Var]) -> frozenset[Var]:
    """Find the values of a lowered program whose cotangents may be zero although they are computed.

    Parameters
    ----------
    function : Function
        The program.
    scopes : Scopes
        Its scopes.
    sources : mapping
        For each value, the values that flow into it (`Activity.sources`).
    active : set of Var
        The values that have a derivative.
    """
    inside = _with_parts(function)
    dropped = {var for stmt, parts in inside for var in (*_chosen(parts), *_dropped(stmt, parts, scopes))}
    dropped |= {var for _, parts in inside for var in _weighted(parts, active)}
    return frozenset(closure(dropped, sources) | _vanishing(inside, sources, _HANDED_ON))


def made_finite(function: Function, sources: Mapping[Var, set[Var]]) -> frozenset[Var]:
    """Find the values whose infinity or NaN the program may mask, so that the tangents of its results stay finite.

    A tangent follows its value: both are overwritten, sliced away or left in an untaken branch together.  So these
    are fewer values than the backward sweep masks out.  See `set_aside` for the arguments.
    """
    inside = _with_parts(function)
    chosen = closure({var for _, parts in inside for var in _chosen(parts)}, sources)
    # a product with a zero cotangent has a tangent that masks by itself
    return frozenset(chosen | _vanishing(inside, sources, _HANDED_ON | {intrinsics.strong_mul, intrinsics.guarded}))


_Parts = list[Load | Call]


def _with_parts(function: Function) -> list[tuple[Stmt, _Parts]]:
    """The statements of a program, each with its own element reads and calls."""
    return [
        (
            stmt,
            [part for header in stmt.headers for part in traversal.subexpressions(header) if type(part) in _KINDS],
        )
        for stmt in traversal.statements(function.body)
    ]


_KINDS = (Load, Call)


def _vanishing(inside: list[tuple[Stmt, _Parts]], sources: Mapping[Var, set[Var]], handing_on: Set[Any]) -> set[Var]:
    """Values whose infinity a call may make finite."""
    # dividing by one element of an array does not make the array a divisor
    elements = {target for stmt, _ in inside for target in _element_read(stmt)}
    direct = {sink: into for sink, into in sources.items() if sink not in elements}
    kept = handing_on | CHOOSING
    return closure({var for _, parts in inside for var in _made_finite(parts, kept)}, direct)


def _chosen(parts: _Parts) -> Iterator[Var]:
    """Values among which a call selects."""
    for part in parts:
        if type(part) is Call and (part.func in CHOOSING or (part.kwargs and "where" in dict(part.kwargs))):
            yield from active_operands(part)


def _weighted(parts: _Parts, active: Set[Var]) -> Iterator[Var]:
    """Values that are multiplied by a factor without derivative, which may be zero."""
    for part in parts:
        if type(part) is Call and part.func in PRODUCTS:
            values = [arg for arg in part.args if arg in active]
            if len(values) == 1 and not any(is_nonzero(arg) for arg in part.args):
                yield from (value for value in values if isinstance(value, Var))


def is_nonzero(factor: Expr) -> bool:
    """Whether a factor is known not to be zero."""
    return isinstance(factor, Const) and isinstance(factor.value, (int, float, complex)) and factor.value != 0


def _dropped(stmt: Stmt, parts: _Parts, scopes: Scopes) -> Iterator[Var]:
    """Values of which a statement selects a part."""
    for part in parts:
        if type(part) is Load and _is_part(part.index):
            yield part.array
    if isinstance(stmt, Store) and not stmt.accumulate and (scopes.at[stmt].in_branch or _is_part(stmt.index)):
        yield stmt.array
    elif isinstance(stmt, Return) and (
        len(stmt.values) > 1 or any(isinstance(value.type, Array) for value in stmt.values)
    ):
        yield from (value for value in stmt.values if isinstance(value, Var))  # the caller's cotangents may be zero
    if isinstance(stmt, (Assign, Store)) and scopes.at[stmt].in_branch:
        for var in active_operands(stmt.value):
            if var in scopes.owner and _branches(scopes.at[stmt], scopes.owner[var]):
                yield var


def _made_finite(parts: _Parts, kept: Set[Any]) -> Iterator[Var]:
    """Values whose infinity a call may make finite: `np.exp(-inf)` is 0, and so is its derivative."""
    for part in parts:
        if type(part) is Call and part.func not in kept:
            yield from active_operands(part.args[1] if part.func in _DIVISIONS else part)


def _element_read(stmt: Stmt) -> Iterator[Var]:
    if isinstance(stmt, Assign) and isinstance(stmt.value, Load) and isinstance(stmt.value.type, Scalar):
        yield from stmt.targets


def _is_part(index: tuple[Any, ...]) -> bool:
    """Whether an index selects some elements only, unlike a loop that visits every row or element in turn."""
    return not any(map(traversal.free_vars, index)) or any(
        not isinstance(item, Slice) and isinstance(item.type, Array) for item in index
    )


def _branches(scope: Scope, owner: Scope) -> bool:
    """Whether a value of `owner` is used in a branch within it."""
    for around in scope.chain:
        if around is owner:
            return False
        if isinstance(around.header, If):
            return True
    return False
