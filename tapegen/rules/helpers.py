"""Rule helpers: functions that rule bodies may call besides NumPy.

There are two kinds.

*Inlined* helpers are rule text like any other: the compiler inlines them, and they branch only on compile-time
constants (ranks, axes, flags, None, the structure of tuples).  Loops over tuples are unrolled; a loop over `range`
stays a loop.

*Compile-time* helpers carry the mark `compile_time`.  All their arguments are compile-time constants, so the compiler
calls them and uses the result; generated code does not contain them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tapegen.errors import NotDifferentiable

Func = TypeVar("Func", bound=Callable[..., Any])


def compile_time(func: Func) -> Func:
    """Mark a helper that the compiler runs instead of inlining it."""
    func.compile_time = True  # type: ignore[attr-defined]
    return func


def is_compile_time(func: object) -> bool:
    """Whether the compiler runs `func` itself."""
    return getattr(func, "compile_time", False) is True


# ---- compile time --------------------------------------------------------------------------------------------------


@compile_time
def require(condition: bool, reason: str, advice: str = "") -> None:
    """Refuse a use of a function that its rule does not cover."""
    if not condition:
        raise NotDifferentiable(reason, advice)


@compile_time
def one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Refuse values of an option that a rule does not list, so that no branch catches unknown values."""
    known = isinstance(value, str | int | float | np.generic | None) and value in choices
    if not known:
        raise NotDifferentiable(f"{name}={value!r} has no rule.", f"Known values are {', '.join(map(repr, choices))}.")


@compile_time
def no_overwriting(**flags: bool) -> None:
    """Refuse options that let a function overwrite its arguments."""
    for name, flag in flags.items():
        require(not flag, f"{name}=True writes into an argument.", "Leave it out.")


@compile_time
def axes_tuple(axis: int | tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """The axes meant by `axis`, counted from 0; None means all.  NumPy accepts axis 0 of a scalar, without axes."""
    if axis is None or rank == 0:
        return tuple(range(rank))
    return tuple(k % rank for k in (axis if isinstance(axis, tuple | list) else (axis,)))


@compile_time
def other_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The axes that are not in `axes`."""
    return tuple(k for k in range(rank) if k not in axes)


@compile_time
def trailing_axes(axis: int, rank: int) -> tuple[int, ...]:
    """The new trailing axes that align a vector with `axis` of an array."""
    return tuple(range(1, rank - axis % rank))


@compile_time
def inverse_permutation(axes: int | tuple[int, ...]) -> tuple[int, ...]:
    """The inverse of the permutation `axes`."""
    if isinstance(axes, int):  # the one axis of a vector
        axes = (axes,)
    order = [k % len(axes) for k in axes]
    return tuple(order.index(k) for k in range(len(order)))


@compile_time
def even_axes(rank: int) -> tuple[int, ...]:
    """The first of each of `rank` pairs of axes."""
    return tuple(range(0, 2 * rank, 2))


@compile_time
def odd_axes(rank: int) -> tuple[int, ...]:
    """The second of each of `rank` pairs of axes."""
    return tuple(range(1, 2 * rank, 2))


@compile_time
def one_axis(axis: int | tuple[int, ...] | None, rank: int, before: int, keepdims: bool) -> tuple[int, ...] | None:
    """The size-1 axes that `keepdims` keeps, shifted by `before` leading axes; None for none."""
    return tuple(before + k for k in axes_tuple(axis, rank)) if keepdims and rank else None


# ---- along one axis ------------------------------------------------------------------------------------------------


def slice_axis(x: Any, axis: int, start: Any, stop: Any, step: Any = None) -> Any:
    """View of `x[start:stop:step]` along one axis."""
    axis = axis % np.ndim(x)
    if axis == 0:
        return x[start:stop:step]
    if axis == 1:
        return x[:, start:stop:step]
    if axis == 2:
        return x[:, :, start:stop:step]
    if axis == 3:
        return x[:, :, :, start:stop:step]
    front = np.moveaxis(x, axis, 0)
    return np.moveaxis(front[start:stop:step], 0, axis)


def index_axis(x: Any, axis: int, k: Any) -> Any:
    """View of `x[k]` along one axis, which is removed."""
    axis = axis % np.ndim(x)
    if axis == 0:
        return x[k]
    if axis == 1:
        return x[:, k]
    if axis == 2:
        return x[:, :, k]
    if axis == 3:
        return x[:, :, :, k]
    return np.moveaxis(x, axis, 0)[k]


def reverse_axis(x: Any, axis: int) -> Any:
    """View of `x`, reversed along one axis."""
    return slice_axis(x, axis, None, None, -1)


def flat(x: Any) -> Any:
    """The elements as a vector."""
    if np.ndim(x) == 1:
        return x
    return np.ravel(x)


def unflat(row: Any, like: Any) -> Any:
    """The elements of a vector in the shape of another array."""
    if np.ndim(like) == 1:
        return row
    return np.reshape(row, np.shape(like))


def open_range(size: Any, axis: int, rank: int) -> Any:
    """0, 1, ..., size - 1 along one axis of an array whose other axes have size 1."""
    shape = (1,) * axis + (size,) + (1,) * (rank - axis - 1)
    return np.reshape(np.arange(size), shape)


# ---- reductions ----------------------------------------------------------------------------------------------------


def expand_like(out_bar: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """The result of a reduction, or its cotangent, broadcast to the shape of the operand."""
    if axis is not None and not keepdims and np.ndim(x) > 0:
        out_bar = np.expand_dims(out_bar, axis)
    return np.broadcast_to(out_bar, np.shape(x))


def keep_axis(out: Any, axis: Any, keepdims: bool) -> Any:
    """The result of a reduction, or its cotangent, in a shape that broadcasts against the operand."""
    if axis is not None and not keepdims:
        return np.expand_dims(out, axis)
    return out


def kept_sum(x: Any, axis: Any) -> Any:
    """Sum that broadcasts against `x`."""
    if axis is None:
        return np.sum(x)
    return np.sum(x, axis=axis, keepdims=True)


def kept_count(hit: Any, axis: Any, dtype: Any) -> Any:
    """The count of true elements, in a shape that broadcasts against `hit`."""
    if axis is None:
        return np.sum(hit, dtype=dtype)
    return np.sum(hit, axis=axis, keepdims=True, dtype=dtype)


def kept_mean(x: Any, axis: Any) -> Any:
    """Mean that broadcasts against `x`."""
    if axis is None:
        return np.mean(x)
    return np.mean(x, axis=axis, keepdims=True)


def count_along(x: Any, axis: Any) -> Any:
    """The number of elements of `x` per element of a reduction over `axis`."""
    if axis is None:
        return np.size(x)
    if not isinstance(axis, tuple) and np.ndim(x) > 0:
        return np.shape(x)[axis]
    count = 1
    for k in axes_tuple(axis, np.ndim(x)):
        count = count * np.shape(x)[k]
    return count


def lanes(x: Any, axis: Any) -> Any:
    """`x` with the reduced axes flattened into the first axis, followed by the other axes."""
    if axis is None:
        return flat(x)
    axes = axes_tuple(axis, np.ndim(x))
    front = np.moveaxis(x, axes, axes_tuple(None, len(axes)))
    if len(axes) == 1:
        return front
    return np.reshape(np.copy(front), (count_along(x, axes),) + np.shape(front)[len(axes) :])


def from_lanes(rows: Any, x: Any, axis: Any) -> Any:
    """The inverse of `lanes(x, axis)`: the elements at their positions in x."""
    axes = axes_tuple(axis, np.ndim(x))
    front = axes_tuple(None, len(axes))
    return np.moveaxis(np.reshape(rows, np.shape(np.moveaxis(x, axes, front))), front, axes)


# ---- types ---------------------------------------------------------------------------------------------------------


def in_precision_of(value: Any, x: Any) -> Any:
    """A value in the precision of `x`: many functions of scipy return float64 for float32."""
    if np.result_type(x) == np.float32:
        return np.float32(value)
    return value


# ---- matrices ------------------------------------------------------------------------------------------------------


def in_floats(x: Any) -> Any:
    """An array of integers as one of floats: their differences and products may be out of bounds."""
    return x if is_inexact(np.result_type(x)) else np.astype(x, np.float64)


@compile_time
def is_bool(dtype: Any) -> bool:
    """Whether a dtype is that of bools."""
    return bool(np.issubdtype(dtype, np.bool_))


@compile_time
def is_inexact(dtype: Any) -> bool:
    """Whether a dtype is one of floats or complex numbers."""
    return bool(np.issubdtype(dtype, np.inexact))


def as_float64(x: Any) -> Any:
    """An array in double precision; complex numbers would lose their imaginary parts."""
    x = np.asarray(x)
    require(not np.iscomplexobj(x), "this function has a rule for real numbers only, and is complex here.")
    return np.asarray(x, dtype=np.float64)


def matrix_transpose(x: Any) -> Any:
    """Transpose of a matrix, or of each matrix of a stack."""
    if np.ndim(x) == 2:
        return x.T
    return np.swapaxes(x, -1, -2)
