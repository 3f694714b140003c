"""Symbolic zero propagation: formulas without terms that are known to be zero, the tangents of inactive values."""

from __future__ import annotations

import operator
from collections.abc import Sequence, Set
from typing import Any

import numpy as np

from tapegen.ir import builders, traversal
from tapegen.ir.nodes import Assign, Block, Call, Expr, Load, Stmt, Tuple, Var
from tapegen.rules.registry import rule_of

_PRODUCTS: frozenset[Any] = frozenset(
    {
        *(operator.mul, np.multiply, operator.matmul, np.matmul, np.dot, np.inner, np.vdot, np.outer),
        *(np.tensordot, np.einsum, np.convolve, np.correlate),
    }
)
_SUMS: frozenset[Any] = frozenset({operator.add, np.add, operator.sub, np.subtract})
_OF_FIRST: frozenset[Any] = frozenset({operator.neg, np.negative, operator.truediv, np.divide})


class _ZeroNeeded(Exception):
    """A zero is read where it cannot be left out."""


def propagate_zeros(block: Block, exprs: Sequence[Expr], zeros: Set[Var]) -> tuple[Block, list[Expr | None]] | None:
    """Statements and results without the terms that a zero makes zero.

    Parameters
    ----------
    block : Block
        Straight-line statements.
    exprs : sequence of Expr
        The results.
    zeros : set of Var
        Variables that stand for zeros of their types.

    Returns
    -------
    block, exprs
        None stands for a result that is zero.  A single None where a zero is needed as a value.
    """
    known = set(zeros)
    out: list[Stmt] = []
    try:
        for stmt in block:
            if not isinstance(stmt, Assign) or len(stmt.targets) != 1:
                if _reads(stmt) & known:
                    return None
                out.append(stmt)
                continue
            value = _reduced(stmt.value, known)
            if value is None:
                known.add(stmt.targets[0])
            else:
                out.append(Assign(stmt.targets, value, stmt.origin))
        return tuple(out), [_reduced(expr, known) for expr in exprs]
    except _ZeroNeeded:
        return None


def _reads(stmt: Stmt) -> set[Var]:
    found: set[Var] = set()
    for part in traversal.statements((stmt,)):
        for header in part.headers:
            found |= traversal.free_vars(header)
    return found


def _reduced(expr: Expr, known: Set[Var]) -> Expr | None:
    """The expression without its zeros; None when it is zero itself."""
    if not traversal.free_vars(expr) & known:
        return expr
    if isinstance(expr, Var):
        return None
    if isinstance(expr, Load) and expr.array in known:
        return None
    if not isinstance(expr, Call):
        raise _ZeroNeeded
    args = [_reduced(arg, known) for arg in _flat(expr.args)]
    if expr.func in _PRODUCTS and None in args:
        return None
    if expr.func in _SUMS:
        return _sum(expr, *args)
    if expr.func in _OF_FIRST and args[0] is None:
        return None
    if expr.func is np.linalg.solve and args[1] is None:
        return None
    rule = rule_of(expr.func)
    if rule is not None and rule.kind == "linear" and len(rule.wrt) == 1 and args[0] is None:
        return None
    if None in args or any(isinstance(arg, Tuple) for arg in expr.args):
        raise _ZeroNeeded
    return Call(expr.func, tuple(arg for arg in args if arg is not None), expr.kwargs, expr.type)


def _flat(args: tuple[Expr, ...]) -> list[Expr]:
    return [item for arg in args for item in (arg.items if isinstance(arg, Tuple) else (arg,))]


def _sum(call: Call, left: Expr | None, right: Expr | None) -> Expr | None:
    if left is not None and right is not None:
        return Call(call.func, (left, right), call.kwargs, call.type)
    rest = left if right is None else right
    if rest is None:
        return None
    if builders.rank_of(rest.type) != builders.rank_of(call.type):
        raise _ZeroNeeded  # the zero gives the shape
    return builders.neg(rest) if left is None and call.func in (operator.sub, np.subtract) else rest
