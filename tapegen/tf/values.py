"""Values, dtypes, and the wrapping of NumPy's functions.  Python's numbers become float32 and int32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegen import tape
from tapegen.tape import Tensor
from tapegen.tape.tensors.tensor import Traced, holds_traced

Axis = int | Sequence[int] | None


def dtype_of(value: Any, dtype: Any) -> Any:
    """The dtype of new values: Python's numbers are single precision."""
    if dtype is not None or isinstance(value, Traced | np.ndarray | np.generic):
        return dtype
    if isinstance(value, list | tuple) and holds_traced(value):
        return None
    return {"f": np.float32, "i": np.int32}.get(np.asarray(value).dtype.kind)


class TensorShape(tuple[int, ...]):
    """Extents of axes, with TensorFlow's names for what can be asked of them."""

    __slots__ = ()

    def as_list(self) -> list[int]:
        """The extents."""
        return list(self)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self)

    ndims = rank

    def num_elements(self) -> int:
        """The number of elements."""
        return math.prod(self)


class Variable(tape.Variable):
    """A variable; see `tapegen.Variable`."""

    __slots__ = ()

    def __init__(self, initial_value: Any, trainable: bool = True, name: str | None = None, dtype: Any = None) -> None:
        value = initial_value() if callable(initial_value) else initial_value
        super().__init__(value, trainable, f"{name or 'Variable'}:0", dtype_of(value, dtype))


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor of the given numbers."""
    return tape.constant(value, dtype_of(value, dtype), shape, name)


def convert_to_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """A tensor of the same value."""
    return tape.convert_to_tensor(value, dtype_of(value, dtype), name)


def sizes(shape: Any) -> tuple[int, ...]:
    """A shape; it, and each of its extents, may be a tensor."""
    return tuple(map(int, shape)) if np.ndim(shape) else (int(shape),)


def zeros(shape: Any, dtype: Any = np.float32) -> Tensor:
    """A tensor of zeros."""
    return Tensor(np.zeros(sizes(shape), dtype))


def ones(shape: Any, dtype: Any = np.float32) -> Tensor:
    """A tensor of ones."""
    return Tensor(np.ones(sizes(shape), dtype))


def fill(dims: Any, value: Any) -> Tensor:
    """A tensor of one number."""
    return constant(value, shape=sizes(dims))


def eye(num_rows: int, num_columns: int | None = None, dtype: Any = np.float32) -> Tensor:
    """The identity matrix."""
    return Tensor(np.eye(num_rows, num_columns, dtype=dtype))


def linspace(start: Any, stop: Any, num: int) -> Tensor:
    """Evenly spaced numbers."""
    return constant(np.linspace(start, stop, num), np.float32)


def range(*limits: Any, delta: Any = None, dtype: Any = None) -> Tensor:
    """Numbers from a start (0) to a limit, by a step (1)."""
    given = [*([0] if len(limits) == 1 and delta is not None else []), *limits, *([] if delta is None else [delta])]
    dtype = dtype or np.result_type(*(dtype_of(item, None) or item.dtype for item in given))
    return constant(np.arange(*(item.numpy() if isinstance(item, Traced) else item for item in given)), dtype)


def one_hot(indices: Any, depth: int, on_value: Any = 1.0, off_value: Any = 0.0, dtype: Any = np.float32) -> Tensor:
    """For each class a row that has `on_value` in its place."""
    classes = np.asarray(indices)
    return constant(np.where(classes[..., None] == np.arange(depth), on_value, off_value), dtype)


def of_one(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """A NumPy function of one value."""

    def call(input: Any, name: str | None = None) -> Any:
        return function(convert_to_tensor(input))

    call.__name__ = call.__qualname__ = name or function.__name__
    return call


def of_two(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """A NumPy function of two values; a Python number or list takes the type of the other."""

    def call(x: Any, y: Any, name: str | None = None) -> Any:
        if not isinstance(x, Traced) and not isinstance(y, Traced):
            x = convert_to_tensor(x)
        return function(x, y)

    call.__name__ = call.__qualname__ = name or function.__name__
    return call


def axes(axis: Axis) -> Any:
    """One axis, or several, as NumPy takes them."""
    return axis if axis is None or isinstance(axis, int) else sizes(axis)


def absent(module: str, name: str) -> AttributeError:
    """What is raised for a name that is not here."""
    return AttributeError(
        f"{module} has no '{name}': it holds what automatic differentiation needs. NumPy's functions take tensors and "
        "are recorded: write it with them."
    )
