"""Type join: one type for the values that a variable has on several paths."""

from __future__ import annotations

import functools
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from tapegen.frontend.values.materialize import type_of
from tapegen.frontend.values.pytree import UNKNOWN, StaticValue
from tapegen.frontend.values.state import is_number
from tapegen.ir.nodes import Call, Const, Expr, Load, Var
from tapegen.ir.printer import type_text
from tapegen.ir.types import Array, Scalar, Type, is_floating, python_class


class Clash(Exception):
    """Two types without a join; the text says why, `advice` what to write instead."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.advice = advice


def merged_type(name: str, values: Sequence[Any], short: Container[Expr] = ()) -> Type:
    """The type that can hold all the values.

    Parameters
    ----------
    name : str
        The variable, for the message.
    values : sequence
        Its value on each path.
    short : container of Expr
        Python floats whose values a float32 holds exactly.

    Raises
    ------
    Clash
        There is none.
    """
    types = [type_of(value) for value in values]
    result = types[0]
    assert result is not None
    for type_ in types[1:]:
        assert type_ is not None
        result = _both(name, result, type_)
    if isinstance(result, Scalar) and not result.python:
        return _weak(name, result, values, short)
    return result


def _both(name: str, a: Type, b: Type) -> Type:
    if a == b:
        return a
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return Scalar(np.promote_types(a.dtype, b.dtype).name, a.python and b.python)
    if isinstance(a, Array) and isinstance(b, Array) and a.rank == b.rank and a.dtype == b.dtype:
        unit = tuple(a.is_unit(k) and b.is_unit(k) for k in range(a.rank))
        return Array(a.dtype, a.rank, a.layout if a.layout == b.layout else "A", unit if any(unit) else ())
    if _one_number(a) and _one_number(b):
        return Scalar(np.promote_types(a.dtype, b.dtype).name, python=False)  # type: ignore[union-attr]
    texts = f"'{name}' has type {type_text(a)} on one path and {type_text(b)} on another."
    if isinstance(a, Array) != isinstance(b, Array):
        raise Clash(texts, "Start with an array of the final shape, e.g. np.zeros(n) instead of 0.0.")
    raise Clash(texts, "Give it the same dtype and number of axes on all paths.")


def _one_number(type_: Type) -> bool:
    return isinstance(type_, Scalar) or (isinstance(type_, Array) and type_.rank == 0)


@functools.cache
def _common(*dtypes: str) -> str:
    return np.result_type(*map(np.dtype, dtypes)).name


def is_short(value: Any, short: Container[Expr]) -> bool:
    """Whether a value is a Python float that a float32 holds exactly, see `merged_type`."""
    type_ = type_of(value)
    if not isinstance(type_, Scalar) or not type_.python or type_.dtype != "float64":
        return False
    known = value.value if isinstance(value, StaticValue) else value.known
    if known is UNKNOWN:
        return value.expr in short
    with np.errstate(over="ignore"):
        return bool(np.float32(known) == known)


def _weak(name: str, result: Scalar, values: Sequence[Any], short: Container[Expr]) -> Scalar:
    """Python scalars promote weakly: `0.0` becomes a float32 where the other paths have one."""
    types = map(type_of, values)  # a zero-dimensional array counts as a NumPy scalar
    strong = [t for t in types if isinstance(t, Array) or (isinstance(t, Scalar) and not t.python)]
    dtype = _common(*(t.dtype for t in strong))
    if len({np.finfo(t.dtype).dtype for t in strong if is_floating(t)}) > 1:
        raise Clash(f"'{name}' is a float32 on one path and a float64 on another.", f"Convert it: np.float64({name}).")
    for value in values:
        type_ = type_of(value)
        if not isinstance(type_, Scalar):
            continue
        if type_.python and np.promote_types(type_.dtype, dtype).name != dtype:
            known = value.value if isinstance(value, StaticValue) else value.known
            exact = known is not UNKNOWN and (not is_floating(type_) or np.dtype(dtype).type(known) == known)
            if not exact and not is_short(value, short) and is_floating(type_) == is_floating(Scalar(dtype)):
                raise Clash(
                    f"'{name}' is a Python number on one path and a {dtype} on another.",
                    f"Convert it: np.{dtype}({name}).",
                )
            if is_floating(type_) and not is_floating(Scalar(dtype)):
                dtype = result.dtype
    return Scalar(dtype, python=False)


def converted(expr: Expr, type_: Type) -> Expr:
    """An expression converted to the joined type."""
    have = expr.type
    if isinstance(have, Array) and isinstance(type_, Scalar):
        assert isinstance(expr, Var)
        expr = Load(expr, (), Scalar(have.dtype, python=False))
        have = expr.type
    if not isinstance(type_, Scalar) or not isinstance(have, Scalar) or have.dtype == type_.dtype:
        return expr
    if isinstance(expr, Const) and is_number(expr.value):
        if type_.dtype == "float64":
            return Const(float(expr.value))  # type: ignore[arg-type]
        if type_.dtype == "int64":
            return Const(int(expr.value))  # type: ignore[call-overload]
        if type_.dtype == "complex128" and type_.python:
            return Const(complex(expr.value))  # type: ignore[call-overload]
    if type_.python:
        return Call(python_class(type_), (expr,), (), Scalar(type_.dtype))
    return Call(getattr(np, type_.dtype), (expr,), (), type_)
