"""Type sets: the types that Python gives a value on several paths, where the program has one joined type.

A variable that is an integer on one path and a float on another is a float in the program, and a Python scalar or a
float64 of NumPy is a float64: that suffices for arithmetic.  Queries of the class of a value need the type set.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Iterable

import numpy as np

from tapegen.frontend.values.context import Context
from tapegen.frontend.values.pytree import StaticValue
from tapegen.frontend.values.result_types import NoResultType, result_type
from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Const, Expr, Var
from tapegen.ir.types import Array, ListOf, Scalar, Type

Kinds = frozenset[Type]

_NUMPY = Scalar("float64", python=False)


def kinds_of(cx: Context, expr: Expr) -> Kinds:
    """The types of a value on all paths to it."""
    if cx.symbols.kinds:
        if isinstance(expr, Var) and expr in cx.symbols.kinds:
            return cx.symbols.kinds[expr]
        if isinstance(expr, Call) and isinstance(expr.type, Scalar):
            return _of_call(cx, expr)
    return frozenset((expr.type,))


def several_kinds(cx: Context, expr: Expr) -> Kinds:
    """The types of a scalar if they differ between paths; empty where they are the same on all."""
    kinds = kinds_of(cx, expr) if isinstance(expr.type, Scalar) else frozenset()
    return kinds if len(kinds) > 1 else frozenset()


def note_kinds(cx: Context, var: Var, exprs: Iterable[Expr]) -> None:
    """Record the type set of a variable, or of the items of a list."""
    if not isinstance(var.type.item if isinstance(var.type, ListOf) else var.type, Scalar):
        return
    kinds = cx.symbols.kinds.get(var, frozenset()).union(*(kinds_of(cx, expr) for expr in exprs))
    if len(kinds) > 1:
        cx.symbols.kinds[var] = kinds


def least_kind(cx: Context, expr: Expr) -> Type:
    """The type of a value on the path with the narrowest dtype."""
    if isinstance(expr, Var) and isinstance(expr.type, Array):
        dtype = narrower_dtype(cx, expr)
        return expr.type if dtype is None else dataclasses.replace(expr.type, dtype=dtype)
    kinds = [kind for kind in kinds_of(cx, expr) if isinstance(kind, (Array, Scalar))]
    least = min(kinds, key=lambda kind: _ORDER.index(np.dtype(kind.dtype).kind), default=expr.type)
    return expr.type if least.dtype == getattr(expr.type, "dtype", None) else least  # type: ignore[union-attr]


_ORDER = "buifcmMOSUV"


def narrower_dtype(cx: Context, array: Var) -> str | None:
    """The narrower dtype that an array has on some paths; none where it equals its dtype in the program."""
    found = (cx.symbols.narrower.get(place) for place in (array, *(cx.symbols.roots_of(array) or ())))
    return next((dtype for dtype in found if dtype is not None), None)


def is_mixed(cx: Context, expr: Expr) -> bool:
    """Whether a float64 of NumPy is a Python scalar on some paths."""
    return (
        bool(cx.symbols.kinds)
        and expr.type == _NUMPY
        and any(getattr(kind, "python", False) for kind in kinds_of(cx, expr))
    )


def _of_call(cx: Context, call: Call) -> Kinds:
    own = frozenset((call.type,))
    if call.func is intrinsics.item and isinstance(call.args[0], Var):
        return cx.symbols.kinds.get(call.args[0], own)
    given = [kinds_of(cx, arg) for arg in call.args]
    if call.kwargs or all(len(kinds) == 1 for kinds in given) or not _is_arithmetic(call):
        return own
    found: set[Type] = set()
    for types in itertools.product(*given):
        exact = call.func is operator.pow
        args = tuple(
            StaticValue(arg.value) if exact and isinstance(arg, Const) else type_
            for arg, type_ in zip(call.args, types, strict=True)
        )
        try:
            found.add(result_type(call.func, args))
        except NoResultType:  # no path gets here
            continue
    return frozenset(found) or own


def _is_arithmetic(call: Call) -> bool:
    return isinstance(call.func, np.ufunc) or getattr(call.func, "__module__", "") in ("_operator", "builtins", "math")
