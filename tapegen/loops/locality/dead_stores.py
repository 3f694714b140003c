"""Dead store elimination: scalars that are not read, and stores into new arrays of which only the size is read.

A program keeps statements whose values are not read, because they may raise.  In loops over scalars every such error
has a check of its own, so a statement may go if evaluating it cannot raise.  It pays wherever a derivative does not
need what its primal computed; it runs once more after fusion, which leaves arrays without readers.

Before::

    def f(x: "f8[:]"):
        s = 0.0
        t = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            t[i] = x[i] * 2.0
            s = s + x[i]
        return s

After::

    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
        return s
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from tapegen.ir import intrinsics, traversal
from tapegen.ir.dead_code import remove_dead
from tapegen.ir.nodes import Assign, Call, Const, For, Function, If, Load, Slice, Stmt, Store, Tuple, Var
from tapegen.ir.types import Array, Scalar, is_floating

_NEW = (np.empty, np.zeros)
_SIZES: frozenset[Any] = frozenset({intrinsics.dim, np.size})
_SILENT: frozenset[Any] = frozenset({abs, min, max, float, bool, intrinsics.ifelse, intrinsics.and_, intrinsics.or_})


def eliminate_dead_stores(function: Function) -> Function:
    """The same program without them."""
    foreign = {*function.params, *function.tapes, *function.computed}  # arrays that are allocated elsewhere
    for stmt in traversal.statements(function.body):
        if type(stmt) is not Assign or not _is_new(stmt):
            foreign.update(stmt.targets)

    def may_go(stmt: Stmt) -> bool:
        if isinstance(stmt, Assign):
            scalar = len(stmt.targets) == 1 and type(stmt.targets[0].type) is Scalar
            return _is_new(stmt) or (scalar and _is_silent(stmt.value))
        if isinstance(stmt, Store):
            return stmt.array not in foreign and all(map(_is_silent, (*stmt.index, stmt.value)))
        return isinstance(stmt, (If, For)) and all(map(_is_silent, stmt.headers))

    return traversal.with_body(function, remove_dead(function.body, (), may_go))


def _is_new(stmt: Assign) -> bool:
    """Whether a statement allocates an array."""
    return isinstance(stmt.targets[0].type, Array) and isinstance(stmt.value, Call) and stmt.value.func in _NEW


def _is_silent(expr: Any) -> bool:
    """Whether evaluating scalars has no effect and cannot raise beyond the checks before it."""
    return all(
        _is_quiet(part) if isinstance(part, Call) else isinstance(part, (Var, Const, Load, Slice, Tuple))
        for part in traversal.subexpressions(expr)
    )


def _is_quiet(call: Call) -> bool:
    """Whether it is an operation on scalars, or reads a size."""
    if call.func in _SIZES:
        return True
    if call.kwargs or not all(isinstance(arg.type, Scalar) for arg in call.args):
        return False
    module = getattr(call.func, "__module__", None)
    known = call.func in _SILENT or isinstance(call.func, np.ufunc) or module == operator.add.__module__
    return known or (module == math.__name__ and is_floating(call.type))
