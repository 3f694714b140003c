"""Variables, constants and conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegen.errors import BadArgument
from tapegen.ir.protocols import refuses
from tapegen.runtime.tracebacks import hides_frames
from tapegen.tape.engine import pytree
from tapegen.tape.engine.operations import operation_of
from tapegen.tape.engine.state import STATE, cut, fresh_id
from tapegen.tape.tensors.indexing import astype, bare_index
from tapegen.tape.tensors.tensor import Tensor, Traced, fresh, holds_traced, plain, unary, weak


class Variable(Traced):
    """A value that can be replaced; tapes watch it when it is read.

    Parameters
    ----------
    initial_value : array_like
        Copied.
    trainable : bool
        Whether tapes watch it automatically.
    name : str, optional
        For display.
    dtype : dtype, optional
        By default that of the initial value.
    """

    __slots__ = ("_name", "_trainable")

    @hides_frames
    def __init__(self, initial_value: Any, trainable: bool = True, name: str | None = None, dtype: Any = None) -> None:
        self._value = np.array(_plain(initial_value), dtype)
        self._id = fresh_id()
        self._trainable = bool(trainable)
        self._name = "Variable" if name is None else name
        self._has_taken(initial_value)

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def trainable(self) -> bool:
        """Whether tapes watch it automatically."""
        return self._trainable

    def _operand(self) -> tuple[Any, int]:
        for recorder in STATE.active:
            recorder.read(self)
        return self._value, self._id

    # ---- reading -----------------------------------------------------------------------------------------------------

    def read_value(self) -> Tensor:
        """The present value, as a tensor that later assignments do not change."""
        return convert_to_tensor(self)

    value = read_value

    def __repr__(self) -> str:
        text = repr(self._value if self.ndim else self._value.item())
        gap = "\n" if "\n" in text else ""
        shape = f"({', '.join(map(str, self.shape))}{',' if self.ndim == 1 else ''})"
        head = f"{self.printed_as}.Variable '{self.name}' shape={shape} dtype={self.dtype.name}"
        return f"<{head}, numpy={gap}{text}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Variable, (self._value, self._trainable, self._name)

    def __deepcopy__(self, memo: Any) -> Variable:
        return type(self)(self._value, self._trainable, self._name)

    # ---- assignment --------------------------------------------------------------------------------------------------

    @hides_frames
    def assign(self, value: Any) -> Variable:
        """Replace the value; no derivative passes."""
        new = _plain(value)
        return self._changed(value, new if isinstance(value, Traced) else np.array(new))

    def _changed(self, given: Any, new: Any) -> Variable:
        """Replace the value by one that no other code writes into; what was read before keeps the old one."""
        self._has_taken(given)
        if new.shape != self.shape:
            raise BadArgument(
                f"a value of shape {new.shape} cannot be assigned to the variable '{self.name}' of shape {self.shape}.",
                "Make a new Variable for another shape.",
            )
        if not np.can_cast(new.dtype, self.dtype, "same_kind"):
            raise BadArgument(
                f"a value of type {new.dtype} cannot be assigned to the variable '{self.name}' of type {self.dtype}.",
                "Convert it first (tg.cast).",
            )
        self._value = new.astype(self.dtype, copy=False)
        return self

    def _has_taken(self, given: Any) -> None:
        """Report to tapes where the derivatives of an assigned value end."""
        if STATE.active:
            for item in pytree.leaves(given):
                if isinstance(item, Traced):
                    cut("assigned", self.name, item._id)

    @hides_frames
    def assign_add(self, delta: Any) -> Variable:
        """Replace the value `v` by `v + delta`."""
        return self._changed(delta, self._value + _plain(delta))

    @hides_frames
    def assign_sub(self, delta: Any) -> Variable:
        """Replace the value `v` by `v - delta`."""
        return self._changed(delta, self._value - _plain(delta))

    def __getitem__(self, index: Any) -> Part:
        read = super().__getitem__(index)
        part = Part.__new__(Part)
        part._value, part._id, part._variable, part._index = read._value, read._id, self, index
        return part

    @hides_frames
    def __setitem__(self, index: Any, value: Any) -> None:
        self._set(index, value, _plain(value))

    def _set(self, index: Any, given: Any, new: Any) -> Variable:
        """Replace some elements."""
        array = self._value.copy()
        place = bare_index(index)
        new = np.asarray(new)
        if not np.can_cast(new.dtype, self.dtype, "same_kind") or not _spreads(new.shape, array[place].shape):
            raise BadArgument(
                f"a value of shape {new.shape} and type {new.dtype} cannot be assigned to elements of the variable "
                f"'{self.name}' of shape {array[place].shape} and type {self.dtype}.",
                "Give as many numbers as are replaced, or one.",
            )
        array[place] = new
        return self._changed(given, array)


class Part(Tensor):
    """Elements of a variable as they were when they were read; assignments go to the variable."""

    __slots__ = ("_index", "_variable")
    _variable: Variable
    _index: Any

    @hides_frames
    def assign(self, value: Any) -> Variable:
        """Replace these elements of the variable."""
        return self._variable._set(self._index, value, _plain(value))

    @hides_frames
    def assign_add(self, delta: Any) -> Variable:
        """Add to these elements of the variable."""
        return self._variable._set(self._index, delta, self._now() + _plain(delta))

    @hides_frames
    def assign_sub(self, delta: Any) -> Variable:
        """Subtract from these elements of the variable."""
        return self._variable._set(self._index, delta, self._now() - _plain(delta))

    def _now(self) -> Any:
        return self._variable._value[bare_index(self._index)]


def _spreads(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether an array of one shape can be assigned to one of the other."""
    while len(shape) > len(to) and shape[0] == 1:
        shape = shape[1:]
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(shape[::-1], to[::-1], strict=False))


def _plain(value: Any) -> Any:
    return convert_to_tensor(value)._value if _is_traced(value) else plain(value)


def _is_traced(value: Any) -> bool:
    return isinstance(value, Traced) or (isinstance(value, list | tuple) and holds_traced(value))


def constant(value: Any, dtype: Any = None, shape: tuple[int, ...] | None = None, name: str | None = None) -> Tensor:
    """A tensor of the given values.

    Parameters
    ----------
    value : array_like
        Copied.  Of tensors, and of lists of them, it is `convert_to_tensor`: derivatives pass.
    dtype : dtype, optional
        By default that of the value.
    shape : tuple of int, optional
        One value is repeated, several are rearranged.
    name : str, optional
        Ignored; for scripts that pass one.

    Returns
    -------
    Tensor
        An immutable tensor.

    Examples
    --------
    >>> tg.constant([1.0, 2.0]).numpy().tolist()
    [1.0, 2.0]
    """
    tensor: Any = convert_to_tensor(value, dtype) if _is_traced(value) else fresh(np.array(plain(value), dtype))
    if shape is not None:
        tensor = np.broadcast_to(tensor, shape) if tensor.size == 1 else np.reshape(tensor, shape)
    assert isinstance(tensor, Tensor)
    return tensor


def convert_to_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """A tensor of the same value, through which derivatives pass.

    Parameters
    ----------
    value : array_like, tensor, variable, or a list of them
        A tensor is returned as it is; a list of tensors is stacked.
    dtype : dtype, optional
        By default that of the value.
    name : str, optional
        Ignored; for scripts that pass one.

    Returns
    -------
    Tensor
        An immutable tensor.
    """
    if isinstance(value, list | tuple) and holds_traced(value):
        return _stacked(value, dtype, np.result_type(*(x.dtype for x in pytree.leaves(value) if isinstance(x, Traced))))
    if not isinstance(value, Traced):
        return constant(value, dtype)
    if dtype is not None and np.dtype(dtype) != value.dtype:
        return astype(value, dtype)
    if isinstance(value, Tensor):
        return value
    result = unary(operation_of(np.positive), value)
    assert isinstance(result, Tensor)
    return result


def _stacked(items: Any, dtype: Any, beside: np.dtype) -> Tensor:
    """Tensors and scalars as one tensor; the scalars take the type of the tensors."""
    rows = []
    for item in items:
        if isinstance(item, list | tuple) and holds_traced(item):
            rows.append(_stacked(item, dtype, beside))
        elif isinstance(item, list | tuple | int | float):
            rows.append(constant(weak(item, beside), dtype))
        else:
            rows.append(convert_to_tensor(item, dtype))
    stacked = np.stack(rows)
    assert isinstance(stacked, Tensor)
    return stacked


def cast(x: Any, dtype: Any) -> Tensor:
    """The same values in another type; between floating types derivatives pass.

    Parameters
    ----------
    x : array_like or tensor
        The values.
    dtype : dtype
        The type.

    Returns
    -------
    Tensor
        In the shape of `x`.
    """
    return astype(convert_to_tensor(x), dtype)


def identity(x: Any) -> Tensor:
    """A new tensor of the same value, through which derivatives pass.

    Parameters
    ----------
    x : array_like or tensor
        The values.

    Returns
    -------
    Tensor
        Another object than `x`.
    """
    result = astype(x, x.dtype) if isinstance(x, Traced) else constant(x)
    return result


for _made in (Tensor, Variable, constant, convert_to_tensor, cast, identity):
    refuses(
        _made,
        "a function that is differentiated as a whole works on arrays, and this makes tensors, which tapes record.",
        "Use the array as it is (np.asarray(x, dtype) converts it), or record the function with a GradientTape "
        "instead of decorating it.",
    )
