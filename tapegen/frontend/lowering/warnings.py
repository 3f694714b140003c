"""Warnings as errors: `warnings.simplefilter("error")`, `np.errstate(divide="raise")`.

NumPy warns where a result is not finite.  So each result is tested, and a non-finite one raises; no handler is emitted
for it, and plain Python runs instead.  A result that is not finite without a warning, such as the sum of an infinite
argument, is treated as if it had one: such a run is refused.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.handlers import handles
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.source.desugar import errors_begin, errors_end
from tapegen.frontend.values.context import Context, OpenIf, OpenLoop
from tapegen.frontend.values.materialize import not_, truth
from tapegen.frontend.values.pytree import Leaf, StaticValue
from tapegen.frontend.values.state import WARNINGS
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Assign, Call, Const, Raise, Slice, Store, Var
from tapegen.ir.printer import callable_text
from tapegen.ir.types import Array, Scalar, is_floating

NOT_FINITE = "a result is not finite where warnings are errors"

_OF_NUMPY = frozenset(
    {operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod, operator.floordiv}
    | {operator.neg, operator.matmul, abs, np.sum, np.prod, np.cumsum, np.dot, np.mean}
)
"""Functions besides NumPy's ufuncs that warn only where a floating result is not finite."""

_NEVER_WARNS = intrinsics.VIEW_CALLS | {
    *(np.copy, np.array, np.where, np.empty, np.empty_like, np.zeros, np.zeros_like, np.ones, np.ones_like, np.full),
    *(
        np.concatenate,
        np.stack,
        intrinsics.ifelse,
        intrinsics.dim,
        intrinsics.shape,
        np.size,
        len,
        bool,
        float,
        np.all,
        np.any,
    ),
    *(operator.not_, intrinsics.and_, intrinsics.or_, np.float64),
}


@handles(errors_begin, takes="")
def _begin(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    begin_errors(cx, RuntimeWarning)
    return StaticValue(None)


@handles(errors_end, takes="")
def _end(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    cx.state.vars.pop(WARNINGS, None)
    return StaticValue(None)


def begin_errors(cx: Context, kind: type[BaseException]) -> None:
    """From here on, emitted code raises `kind` where a result is not finite."""
    if WARNINGS in cx.state.vars:
        raise _not_known(cx, "another 'with' of this kind")
    cx.state.vars[WARNINGS] = StaticValue(kind)


def is_of_warning(item: Raise) -> bool:
    """Whether a Raise stands for a warning turned into an error."""
    return item.message == (Const(NOT_FINITE),)


def check_emitted(cx: Context, stmt: Any) -> None:
    """Emit the test of the results of a statement."""
    kind = cx.state.vars.pop(WARNINGS)
    try:
        match stmt:
            case Assign((target,), Call() as call):
                _check_parts(cx, call.args)
                if _may_warn(cx, call):
                    _check_finite(cx, target, kind.value)
            case Assign((_,), value):
                _check_parts(cx, (value,))
            case Store(array, index, value, accumulate):
                _check_parts(cx, (value, *(part for part in index if not isinstance(part, Slice))))
                if accumulate or getattr(value.type, "dtype", "") != array.type.dtype:  # type: ignore[union-attr]
                    _check_finite(cx, array, kind.value)
            case OpenIf(test) | OpenLoop(test=test):
                _check_parts(cx, (test,))
            case _ if not isinstance(stmt, Raise):
                raise _not_known(cx, "this statement")
    finally:
        cx.state.vars[WARNINGS] = kind


def _check_parts(cx: Context, exprs: Any) -> None:
    """Refuse nested expressions that may warn."""
    for expr in exprs:
        for part in traversal.subexpressions(expr):
            if isinstance(part, Call) and _may_warn(cx, part):
                raise _not_known(cx, "a part of this expression")


def _may_warn(cx: Context, call: Call) -> bool:
    """Whether a call warns where its result is not finite; refused where it may give other warnings."""
    type_, func = call.type, call.func
    is_python = all(not isinstance(part.type, Scalar) or part.type.python for part in (call, *call.args))
    arrays = any(isinstance(part.type, Array) for part in (call, *call.args))
    if func in _NEVER_WARNS or (is_python and not arrays) or getattr(func, "__module__", "") == math.__name__:
        return False
    known = isinstance(func, np.ufunc) or func in _OF_NUMPY
    if known and getattr(type_, "dtype", "") == "bool":
        return False
    if known and is_floating(type_):
        return True
    if func in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        return False
    if func in (operator.and_, operator.or_, operator.invert):
        return False
    raise _not_known(cx, callable_text(func))


def _not_known(cx: Context, what: str) -> Exception:
    return cx.refusal(
        NotDifferentiable,
        f"warnings are errors here, and whether {what} warns is not followed.",
        "Put the 'with' around single formulas of arithmetic and functions of NumPy, or test with np.isfinite.",
    )


def _check_finite(cx: Context, var: Var, kind: type[BaseException]) -> None:
    finite = emit_call(cx, np.isfinite, (Leaf(var),))
    if isinstance(var.type, Array):
        finite = emit_call(cx, np.all, (finite,))
    test = not_(truth(cx, finite))
    if not isinstance(test, bool):
        cx.raise_if(test, kind, NOT_FINITE)
