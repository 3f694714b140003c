"""Tensors: immutable values whose operations are recorded, and the single entry point of all operations."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from tapegen.errors import BadArgument, NotDifferentiable
from tapegen.runtime.tracebacks import hide_frames, hides_frames
from tapegen.tape.engine.hooks import HOOKS
from tapegen.tape.engine.leaks import refuse
from tapegen.tape.engine.operations import Operation, operation_of
from tapegen.tape.engine.stack_frames import user_span
from tapegen.tape.engine.state import STATE, Call, cut, flat_ids, fresh_id, is_tracked
from tapegen.tape.tensors.array_methods import ArrayMethods

_new = object.__new__
_SEQUENCES = (list, tuple)
_ONE, _FIRST, _SECOND, _BOTH = (True,), (True, False), (False, True), (True, True)


class Traced(ArrayMethods):
    """Common base of tensors and variables: a value, a unique number, and recorded operations."""

    __slots__ = ("__weakref__", "_id", "_value")
    __array_priority__ = 100.0
    __hash__ = None  # type: ignore[assignment]
    printed_as: ClassVar[str] = "tg"
    shape_type: ClassVar[type[tuple[int, ...]]] = tuple

    _value: Any
    _id: int

    # ---- attributes --------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes."""
        return self.shape_type(self._value.shape)

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self._value.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._value.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._value.size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self._value.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._value.nbytes

    @property
    def device(self) -> str:
        """The device of the elements, as for arrays: always `cpu`."""
        return "cpu"

    def numpy(self) -> Any:
        """The value, outside of all recording: a read-only array, or a NumPy scalar where there are no axes."""
        value = self._value
        if STATE.active:
            cut("left", "", self._id)
        if isinstance(value, np.ndarray):
            if not value.ndim:
                return value[()]
            value.flags.writeable = False
            return value.view()
        return value

    @staticmethod
    def __tapegen_call__(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a differentiable function (see `ir.protocols.recorder_of`)."""
        return HOOKS.call_compiled(function, args, kwargs)

    def _operand(self) -> tuple[Any, int]:
        """The value as it is read now, and the number by which recorders know it."""
        return self._value, self._id

    # ---- conversions -------------------------------------------------------------------------------------------------

    def _leave(self, form: str) -> Any:
        """The value for code that does not record."""
        value, number = self._operand()
        if is_tracked(number):
            raise refuse(form)
        return value

    @hides_frames
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = np.asarray(self._leave("an array"), dtype)
        if copy:
            return value.copy()
        if value is self._value:
            value.flags.writeable = False
            return value.view()
        return value

    @hides_frames
    def __float__(self) -> float:
        return float(self._leave("a float"))

    @hides_frames
    def __int__(self) -> int:
        return int(self._leave("an int"))

    @hides_frames
    def __complex__(self) -> complex:
        return complex(self._leave("a complex number"))

    @hides_frames
    def __index__(self) -> int:
        return self._leave("an index").__index__()

    def __bool__(self) -> bool:
        return bool(self._operand()[0])

    @hides_frames
    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    @hides_frames
    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return (self[k] for k in range(self.shape[0]))

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(np.equal(self._value, item._value if isinstance(item, Traced) else item)))

    def __format__(self, spec: str) -> str:
        return format(self._value if not self.ndim else str(self), spec)

    @hides_frames
    def __setitem__(self, index: Any, value: Any) -> None:
        raise NotDifferentiable(
            f"a {type(self).__name__} cannot be changed in place.",
            "Make a new one: np.where(mask, new, x), np.concatenate(...); a Variable has assign().",
            user_span(),
        )

    # ---- NumPy's protocols -------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        try:
            if method == "__call__" and not kwargs:
                operation = operation_of(ufunc)
                if operation.kind != "expands":
                    if len(inputs) == 1 and ufunc.nout == 1:
                        return unary(operation, inputs[0])
                    if len(inputs) == 2 and ufunc.nout == 1:
                        return binary(operation, inputs[0], inputs[1])
            return HOOKS.ufunc(ufunc, method, inputs, kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        try:
            return HOOKS.function(func, args, kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    def __getitem__(self, index: Any) -> Tensor:
        try:
            return HOOKS.getitem(self, index)
        except BaseException as error:
            hide_frames(error)
            raise

    # ---- operators ---------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return binary(_ADD, self, other)

    def __radd__(self, other: Any) -> Any:
        return binary(_ADD, other, self)

    def __sub__(self, other: Any) -> Any:
        return binary(_SUB, self, other)

    def __rsub__(self, other: Any) -> Any:
        return binary(_SUB, other, self)

    def __mul__(self, other: Any) -> Any:
        return binary(_MUL, self, other)

    def __rmul__(self, other: Any) -> Any:
        return binary(_MUL, other, self)

    def __truediv__(self, other: Any) -> Any:
        return binary(_DIV, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return binary(_DIV, other, self)

    def __pow__(self, other: Any) -> Any:
        return binary(_POW, self, other)

    def __rpow__(self, other: Any) -> Any:
        return binary(_POW, other, self)

    def __matmul__(self, other: Any) -> Any:
        return binary(_MATMUL, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return binary(_MATMUL, other, self)

    def __mod__(self, other: Any) -> Any:
        return binary(_MOD, self, other)

    def __rmod__(self, other: Any) -> Any:
        return binary(_MOD, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return binary(operation_of(np.floor_divide), self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return binary(operation_of(np.floor_divide), other, self)

    def __divmod__(self, other: Any) -> Any:
        return np.divmod(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return np.divmod(other, self)

    def __neg__(self) -> Any:
        return unary(_NEG, self)

    def __pos__(self) -> Any:
        return unary(operation_of(np.positive), self)

    def __abs__(self) -> Any:
        return unary(operation_of(np.absolute), self)

    def __invert__(self) -> Any:
        return unary(operation_of(np.invert), self)

    def __and__(self, other: Any) -> Any:
        return binary(operation_of(np.bitwise_and), self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return binary(operation_of(np.bitwise_or), self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Any:
        return binary(operation_of(np.bitwise_xor), self, other)

    __rxor__ = __xor__

    def __eq__(self, other: Any) -> Any:
        return binary(operation_of(np.equal), self, other)

    def __ne__(self, other: Any) -> Any:
        return binary(operation_of(np.not_equal), self, other)

    def __lt__(self, other: Any) -> Any:
        return binary(operation_of(np.less), self, other)

    def __le__(self, other: Any) -> Any:
        return binary(operation_of(np.less_equal), self, other)

    def __gt__(self, other: Any) -> Any:
        return binary(operation_of(np.greater), self, other)

    def __ge__(self, other: Any) -> Any:
        return binary(operation_of(np.greater_equal), self, other)


class Tensor(Traced):
    """An immutable array; made by `constant` and by operations on tensors and variables.

    NumPy functions, operators and methods of arrays accept tensors and return tensors.
    """

    __slots__ = ()

    def __init__(self, value: Any) -> None:
        self._value = np.array(value)  # a copy: no other code must be able to write into it
        self._id = fresh_id()

    def __repr__(self) -> str:
        text = repr(self._value if self.ndim else self._value.item())
        gap = "\n" if "\n" in text else ""
        return f"<{self.printed_as}.Tensor: shape={_shape_text(self)}, dtype={self.dtype.name}, numpy={gap}{text}>"

    def __str__(self) -> str:
        text = str(self._value)
        gap = "\n" if "\n" in text else ""
        return f"{self.printed_as}.Tensor({gap}{text}, shape={_shape_text(self)}, dtype={self.dtype.name})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Tensor, (self._leave("a pickle"),)

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self


def _shape_text(tensor: Traced) -> str:
    shape = tensor.shape
    return f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"


def fresh(value: Any) -> Tensor:
    """A tensor of a value that no other code writes into."""
    made = _new(Tensor)
    made._value = value
    made._id = fresh_id()
    return made


def known_as(value: Any, number: int) -> Tensor:
    """A tensor with a number that recorders have seen before."""
    made = Tensor.__new__(Tensor)
    made._value = value
    made._id = number
    return made


def operand(item: Any) -> tuple[Any, int]:
    """The value of an operand, and its number (0 for an operand that is no tensor)."""
    if isinstance(item, Traced):
        return item._operand()
    return (item if type(item) in _PLAIN else plain(item)), 0


_PLAIN = frozenset({np.ndarray, int, float, bool, complex, str, type(None), list, tuple})


def plain(item: Any) -> Any:
    """An operand that is no tensor; of arrays of other kinds only the elements count.

    Raises
    ------
    BadArgument
        For arrays whose operators mean something else.
    """
    if not isinstance(item, np.ndarray) or type(item) is np.ndarray:
        return item
    if isinstance(item, np.matrix | np.ma.MaskedArray):
        raise BadArgument(
            f"tensors cannot be combined with arrays of the kind '{type(item).__name__}'.",
            "Pass np.asarray(m), and write products with @; pass np.where(mask, ..., x.data) for what is masked.",
            user_span(),
        )
    return item.view(np.ndarray)


def _stacked(items: Any, other: Any) -> tuple[Any, int]:
    """A list as an operand: tensors are stacked, scalars do not widen the floats next to them."""
    if holds_traced(items):
        return operand(HOOKS.stack(items))
    return weak(items, other), 0


def weak(items: Any, other: Any) -> Any:
    """Python scalars, or lists of them, as an array that does not widen the floats of another one."""
    array = np.asarray(items)
    dtype = np.result_type(other, {"f": 1.0, "i": 1, "b": True, "c": 1j}.get(array.dtype.kind, array))
    return array.astype(dtype, copy=False)


def holds_traced(items: Any) -> bool:
    """Whether there is a tensor in nested lists."""
    return any(isinstance(x, Traced) or (isinstance(x, list | tuple) and holds_traced(x)) for x in items)


# ---- operations ------------------------------------------------------------------------------------------------------


def unary(operation: Operation, x: Any) -> Any:
    """A function of one array with one result."""
    value, number = (x._value, x._id) if type(x) is Tensor else operand(x)
    out = _new(Tensor)
    out._value = result = operation.func(value)
    out._id = made = fresh_id()
    for recorder in STATE.active:
        if number in recorder.tracked:
            recorder.note_plain(operation, _ONE, (value,), (number,), result, made)
    return out


def binary(operation: Operation, x: Any, y: Any) -> Any:
    """A function of two arrays with one result."""
    x_value, x_number = (x._value, x._id) if type(x) is Tensor else operand(x)
    y_value, y_number = (y._value, y._id) if type(y) is Tensor else operand(y)
    if not x_number and isinstance(x_value, _SEQUENCES):
        x_value, x_number = _stacked(x_value, y_value)
    elif not y_number and isinstance(y_value, _SEQUENCES):
        y_value, y_number = _stacked(y_value, x_value)
    out = _new(Tensor)
    out._value = result = operation.func(x_value, y_value)
    out._id = made = fresh_id()
    for recorder in STATE.active:
        tracked = recorder.tracked
        if x_number in tracked:
            which = _BOTH if y_number in tracked else _FIRST
        elif y_number in tracked:
            which = _SECOND
        else:
            continue
        recorder.note_plain(operation, which, (x_value, y_value), (x_number, y_number), result, made)
    return out


def note(call: Call) -> None:
    """Report a call to every recorder that tracks one of the arguments."""
    if STATE.active:
        is_nested = tuple in map(type, call.ids)
        numbers = set(flat_ids(call.ids)) if is_nested else call.ids
        is_wide = is_nested or type(call.out) is tuple
        for recorder in STATE.active:
            if not recorder.tracked.isdisjoint(numbers):
                (recorder.note_wide if is_wide else recorder.note)(call)


_ADD = operation_of(np.add)
_SUB = operation_of(np.subtract)
_MUL = operation_of(np.multiply)
_DIV = operation_of(np.divide)
_POW = operation_of(operator.pow)
_MATMUL = operation_of(np.matmul)
_MOD = operation_of(np.remainder)
_NEG = operation_of(np.negative)
