"""Accumulation of cotangents: products, sums over broadcast axes, and saved values as tensors again."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tapegen.ir import intrinsics
from tapegen.tape.engine.operations import Operation, operation_of
from tapegen.tape.engine.state import is_tracked
from tapegen.tape.tensors import numpy_dispatch
from tapegen.tape.tensors.tensor import Tensor, known_as

_STRONG = operation_of(intrinsics.strong_mul)
_SUM_TO = operation_of(intrinsics.sum_to)
_WHERE = operation_of(np.where)


def as_tensor(value: Any, number: Any) -> Any:
    """A saved value as the tensor that it was, for recorders that track it."""
    if type(number) is tuple:
        return type(value)(as_tensor(v, n) for v, n in zip(value, number, strict=True))
    return known_as(value, number) if number and is_tracked(number) else value


def is_polynomial(operation: Operation, args: tuple[Any, ...]) -> bool:
    """Whether a call is a power whose derivative is finite everywhere."""
    if operation.func not in (operator.pow, np.power):
        return False
    exponent = args[1]
    return isinstance(exponent, int | float) and (exponent >= 1 or exponent == 0)


def strongly(bar: Any, part: Any, selected: Any = None, record: Any = None) -> Any:
    """`bar * part`, but 0 where `bar` is 0 even if `part` is not finite.

    `selected` is true where the result of the record is used: there zero does not win.
    """
    term = bar * part
    if not _has_nan(term):
        return term
    used = None if selected is None else selected.of(record)
    if used is not None:
        return _where_used(used, term)
    if isinstance(term, Tensor):
        return numpy_dispatch.call(_STRONG, (bar, part), {})
    return intrinsics.strong_mul(bar, part)


def _where_used(used: Any, term: Any) -> Any:
    if used.all():
        return term
    zero = term.dtype.type(0)
    if isinstance(term, Tensor):
        return numpy_dispatch.call(_WHERE, (used, term, zero), {})
    return np.where(used, term, zero)


def divided(bar: Any, part: Any, strong: bool, selected: Any = None, record: Any = None) -> Any:
    """`bar / part`, but 0 where `bar` is 0 if the quotient may fail to be finite (see `strongly`)."""
    if not isinstance(part, Tensor | np.ndarray | np.generic):
        if part:
            return bar * (1.0 / part)  # as in generated source, where the quotient of two scalars is a scalar
        part = np.float64(part) if bar.dtype == np.float64 else bar.dtype.type(part)
    term = bar / part
    if not strong or not _has_nan(term):
        return term
    used = None if selected is None else selected.of(record)
    if used is not None:
        return _where_used(used, term)
    if isinstance(term, Tensor):
        return numpy_dispatch.call(_STRONG, (bar, 1.0 / part), {})
    return np.where(bar == 0.0, bar, term)


def _has_nan(term: Any) -> bool:
    value = term._value if isinstance(term, Tensor) else term
    # NaN somewhere makes the sum of squares NaN, which is a fast test
    square = value.dot(value) if value.ndim == 1 else np.vdot(value, value)
    return bool(square != square)


def unbroadcast(term: Any, like: Any) -> Any:
    """A contribution in the shape and the dtype of its operand."""
    shape = like.shape
    if term.shape != shape:
        if term.ndim >= len(shape):  # else a tangent that is constant along an axis
            term = (
                numpy_dispatch.call(_SUM_TO, (term, like), {})
                if isinstance(term, Tensor)
                else intrinsics.sum_to(term, like)
            )
        if term.shape != shape:
            term = np.broadcast_to(term, shape)
    if term.dtype != like.dtype:
        if term.dtype.kind == "c" and like.dtype.kind != "c":
            term = np.real(term)
        term = term.astype(like.dtype)
    return term
