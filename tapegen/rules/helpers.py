"""What rule bodies call besides NumPy.

Two kinds live here.

*Inlined* helpers are rule text like any other: the compiler inlines them, and they branch only on what is known when
compiling (ranks, axes, flags, None, the structure of tuples).  Loops over tuples are unrolled; a loop over `range`
stays a loop.

*Compile-time* helpers carry the mark `compile_time`.  All their arguments are known when compiling, so the compiler
calls them and goes on with the result; nothing of them reaches generated code.
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
    """Refuse a value of an option that a rule does not speak of, so that no branch is for whatever is left."""
    known = isinstance(value, str | int | float | np.generic | None) and value in choices
    if not known:
        raise NotDifferentiable(f"{name}={value!r} has no rule.", f"Known values are {', '.join(map(repr, choices))}.")


@compile_time
def no_overwriting(**flags: bool) -> None:
    """Refuse that a function takes the memory of its arguments."""
    for name, flag in flags.items():
        require(not flag, f"{name}=True writes into an argument.", "Leave it out.")


@compile_time
def axes_tuple(axis: int | tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """The axes meant by `axis`, counted from 0; None means all.  NumPy lets a number have an axis 0 that is none."""
    if axis is None or rank == 0:
        return tuple(range(rank))
    return tuple(k % rank for k in (axis if isinstance(axis, tuple | list) else (axis,)))


@compile_time
def other_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The axes that are not in `axes`."""
    return tuple(k for k in range(rank) if k not in axes)


@compile_time
def trailing_axes(axis: int, rank: int) -> tuple[int, ...]:
    """Where a vector needs new axes to lie along `axis` of an array."""
    return tuple(range(1, rank - axis % rank))


@compile_time
def inverse_permutation(axes: int | tuple[int, ...]) -> tuple[int, ...]:
    """The permutation of axes that undoes `axes`."""
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
    """The axes of size 1 that `keepdims` leaves of the reduced ones, behind `before` others; None for none."""
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
    """View of `x[k]` along one axis, which is dropped."""
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
    """View of `x` backwards along one axis."""
    return slice_axis(x, axis, None, None, -1)


def flat(x: Any) -> Any:
    """The elements in one row."""
    if np.ndim(x) == 1:
        return x
    return np.ravel(x)


def unflat(row: Any, like: Any) -> Any:
    """The elements of one row in the shape of another array."""
    if np.ndim(like) == 1:
        return row
    return np.reshape(row, np.shape(like))


def open_range(size: Any, axis: int, rank: int) -> Any:
    """0, 1, ..., size - 1 along one axis of an array whose other axes have size 1."""
    shape = (1,) * axis + (size,) + (1,) * (rank - axis - 1)
    return np.reshape(np.arange(size), shape)


# ---- reductions ----------------------------------------------------------------------------------------------------


def expand_like(out_bar: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """The result of a reduction, or its cotangent, spread over the shape of what was reduced."""
    if axis is not None and not keepdims and np.ndim(x) > 0:
        out_bar = np.expand_dims(out_bar, axis)
    return np.broadcast_to(out_bar, np.shape(x))


def keep_axis(out: Any, axis: Any, keepdims: bool) -> Any:
    """The result of a reduction, or its cotangent, in a shape that broadcasts against what was reduced."""
    if axis is not None and not keepdims:
        return np.expand_dims(out, axis)
    return out


def kept_sum(x: Any, axis: Any) -> Any:
    """Sum that broadcasts against `x`."""
    if axis is None:
        return np.sum(x)
    return np.sum(x, axis=axis, keepdims=True)


def kept_count(hit: Any, axis: Any, dtype: Any) -> Any:
    """How many are true, in a shape that broadcasts against `hit`."""
    if axis is None:
        return np.sum(hit, dtype=dtype)
    return np.sum(hit, axis=axis, keepdims=True, dtype=dtype)


def kept_mean(x: Any, axis: Any) -> Any:
    """Mean that broadcasts against `x`."""
    if axis is None:
        return np.mean(x)
    return np.mean(x, axis=axis, keepdims=True)


def count_along(x: Any, axis: Any) -> Any:
    """How many elements of `x` each element of a reduction over `axis` comes from."""
    if axis is None:
        return np.size(x)
    if not isinstance(axis, tuple) and np.ndim(x) > 0:
        return np.shape(x)[axis]
    count = 1
    for k in axes_tuple(axis, np.ndim(x)):
        count = count * np.shape(x)[k]
    return count


def lanes(x: Any, axis: Any) -> Any:
    """The elements that are reduced together along the first axis, the others behind it."""
    if axis is None:
        return flat(x)
    axes = axes_tuple(axis, np.ndim(x))
    front = np.moveaxis(x, axes, axes_tuple(None, len(axes)))
    if len(axes) == 1:
        return front
    return np.reshape(np.copy(front), (count_along(x, axes),) + np.shape(front)[len(axes) :])


def from_lanes(rows: Any, x: Any, axis: Any) -> Any:
    """The elements of `lanes(x, axis)` at the places they have in x."""
    axes = axes_tuple(axis, np.ndim(x))
    front = axes_tuple(None, len(axes))
    return np.moveaxis(np.reshape(rows, np.shape(np.moveaxis(x, axes, front))), front, axes)


# ---- types ---------------------------------------------------------------------------------------------------------


def in_precision_of(value: Any, x: Any) -> Any:
    """A value in the precision of `x`: many functions of scipy make float64 of float32."""
    if np.result_type(x) == np.float32:
        return np.float32(value)
    return value


# ---- matrices ------------------------------------------------------------------------------------------------------


def matrix_transpose(x: Any) -> Any:
    """Transpose of a matrix, or of each matrix of a stack."""
    if np.ndim(x) == 2:
        return x.T
    return np.swapaxes(x, -1, -2)
