"""The precision of scalars: dtypes, conversions, and operands for which numba computes in the dtype that NumPy has."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from tapegen.ir import builders, intrinsics
from tapegen.ir.nodes import Call, Const, Expr, Load
from tapegen.ir.types import BOOL, Scalar


def convert(expr: Expr, dtype: str) -> Expr:
    """A scalar converted to another dtype."""
    if dtype_of(expr) == dtype:
        return expr
    if isinstance(expr, Const) and isinstance(expr.value, (int, float)):
        if dtype in ("float64", "float32"):
            return builders.floating(expr.value, dtype)
        if dtype == "int64":
            return Const(int(expr.value))
        if dtype == "bool":
            return Const(bool(expr.value))
    type_ = Scalar(dtype, False)
    if dtype == "bool":
        return Call(operator.ne, (expr, Const(0)), (), BOOL)
    if dtype_of(expr) == "bool" and dtype == "float64":
        return Call(intrinsics.ifelse, (expr, Const(1.0), Const(0.0)), (), type_)
    func: Any = {"float64": float, "int64": int}.get(dtype) or getattr(np, numpy_name(dtype))
    if func is int and dtype_of(expr).startswith("u"):
        func = np.int64  # numba's `int` gives them no sign
    return Call(func, (expr,), (), type_)


def stored(value: Expr, dtype: str) -> Expr:
    """A scalar rounded as an array of that dtype would store it: numba may compute in more bits."""
    if dtype in ("float64", "int64", "bool") or isinstance(value, Load):
        return convert(value, dtype)
    return Call(getattr(np, dtype), (value,), (), Scalar(dtype, False))


def numpy_name(dtype: str) -> str:
    """The name of NumPy's scalar type of a dtype."""
    return "bool_" if dtype == "bool" else dtype


def dtype_of(expr: Expr) -> str:
    """The dtype of a scalar; an empty string for what is none."""
    type_ = expr.type
    if type(type_) is Scalar:
        return type_.dtype
    return expr.value.dtype.name if type(expr) is Const and isinstance(expr.value, np.generic) else ""


def _weak(expr: Expr) -> bool:
    return (
        isinstance(expr.type, Scalar) and expr.type.python and not isinstance(getattr(expr, "value", None), np.generic)
    )


def common_dtype(args: tuple[Expr, ...]) -> str:
    """NumPy's dtype for operands of which some may be Python scalars."""
    return _common(tuple((dtype_of(arg), _weak(arg)) for arg in args))


@functools.cache
def _common(kinds: tuple[tuple[str, bool], ...]) -> str:
    numbers = {"bool": True, "int64": 1, "float64": 1.0, "complex128": 1j}
    return np.result_type(*(numbers[dtype] if weak else np.dtype(dtype) for dtype, weak in kinds)).name


def in_precision(args: tuple[Expr, ...], dtype: str) -> tuple[Expr, ...]:
    """Operands for which numba computes in `dtype`."""
    if dtype == "float64":
        dtypes = set(map(dtype_of, args))
        if "float64" in dtypes or ("int64" in dtypes and "uint64" not in dtypes):
            return args  # numba promotes as NumPy does
        return (convert(args[0], dtype), *args[1:])
    if dtype == "float32":
        return tuple(convert(arg, dtype) for arg in args)
    return args


def narrowed(expr: Call, dtype: str) -> Expr:
    """An integer result, which numba widens to 64 bits."""
    return convert(expr, dtype) if dtype.startswith(("int", "uint")) and dtype != "int64" else expr
