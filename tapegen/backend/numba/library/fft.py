"""FFT in compiled code: calls of the loops that the functions of `numpy.fft` run.

They are the inner loops of generalized ufuncs, which `PyUFuncObject` of NumPy's C interface holds.  Compiled code
refers to each by a symbol, not by an address, so that cached code finds it in another process.
"""

# mypy: disable-error-code="no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import from_dtype, njit, types
from numba.core import cgutils
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import intrinsic, overload


class _UFunc(ctypes.Structure):
    """The beginning of `PyUFuncObject`."""

    _fields_ = (
        ("object", ctypes.c_byte * object.__basicsize__),
        ("counts", ctypes.c_int * 4),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
    )


@functools.cache
def provide() -> None:
    """Let numba compile calls of the transforms; no effect where NumPy stores their loops elsewhere."""
    try:
        from numpy.fft import _pocketfft_umath as loops  # type: ignore[attr-defined]
    except ImportError:
        return
    _provide(np.fft.fft, _Transform((loops.fft,), "FD", _same, _same))
    _provide(np.fft.ifft, _Transform((loops.ifft,), "FD", _same, _same, inverse=True))
    _provide(np.fft.rfft, _Transform((loops.rfft_n_even, loops.rfft_n_odd), "fd", _same, _half))
    _provide(np.fft.irfft, _Transform((loops.irfft,), "FD", _doubled, _same, inverse=True))


# ---- the loops -----------------------------------------------------------------------------------------------------


def _name_loops(ufunc: np.ufunc) -> None:
    """Register the loops of a ufunc under their symbols."""
    held = _UFunc.from_address(id(ufunc))
    for k, signature in enumerate(ufunc.types):
        llvm.add_symbol(_symbol(ufunc, signature[0]), held.functions[k])


def _symbol(ufunc: np.ufunc, given: str) -> str:
    return f"numpy_fft_{ufunc.__name__}_{given}"


def _is_forward(ufunc: np.ufunc) -> bool | None:
    """The data by which its loops select the direction; None for those that have a single direction."""
    data = _UFunc.from_address(id(ufunc)).data
    return ctypes.c_bool.from_address(data[0]).value if data else None


def _call_of(ufuncs: tuple[np.ufunc, ...], dtype: np.dtype[Any]) -> Any:
    """The function that runs the loop for arrays of one type; the last ufunc is that of odd sizes.

    Compiled code calls it with the two arrays, the factor of the result, the size of the transform, and nine counts of
    elements: the offsets in the two arrays, the number of rows, their lengths in both arrays, the strides from row to
    row in both, and from element to element.
    """
    symbols = [_symbol(ufunc, dtype.char) for ufunc in ufuncs]
    forward = _is_forward(ufuncs[0])
    real = types.float64 if dtype.char in "dD" else types.float32

    @intrinsic
    def call(typing: Any, x: Any, out: Any, scale: Any, size: Any, places: Any) -> Any:
        signature = types.void(x, out, real, types.intp, types.UniTuple(types.intp, 9))
        return signature, functools.partial(_generated, symbols, forward)

    return call


def _generated(symbols: list[str], forward: bool | None, context: Any, builder: Any, signature: Any, args: Any) -> Any:
    x, out, scale, size, places = args
    byte, word = ir.IntType(8), size.type
    start, start_out, rows, length, length_out, row, row_out, step, step_out = cgutils.unpack_tuple(builder, places)
    data, item = _memory(context, builder, signature.args[0], x, start)
    data_out, item_out = _memory(context, builder, signature.args[1], out, start_out)
    number = builder.bitcast(cgutils.alloca_once_value(builder, scale), byte.as_pointer())
    steps = [builder.mul(*pair) for pair in ((row, item), (row_out, item_out), (step, item), (step_out, item_out))]
    if forward is None:
        way = ir.Constant(byte.as_pointer(), None)
    else:  # the loops of both directions are the same, and read here which one to use
        way = cgutils.alloca_once_value(builder, ir.Constant(byte, int(forward)))
    given = [
        _listed(builder, [data, number, data_out]),
        _listed(builder, [rows, length, length_out]),
        _listed(builder, [steps[0], ir.Constant(word, 0), *steps[1:]]),
        way,
    ]
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in given])
    loops = [cgutils.get_or_insert_function(builder.module, kind, symbol) for symbol in symbols]
    is_odd = builder.trunc(size, ir.IntType(1))
    builder.call(builder.select(is_odd, loops[-1], loops[0]), given)
    return context.get_dummy_value()


def _memory(context: Any, builder: Any, type_: Any, array: Any, start: Any) -> tuple[Any, Any]:
    """The address of an element of a contiguous array, and the size of one."""
    held = context.make_array(type_)(context, builder, array)
    address = builder.gep(held.data, [start])
    return builder.bitcast(address, ir.IntType(8).as_pointer()), held.itemsize


def _listed(builder: Any, values: list[Any]) -> Any:
    """The address of some values in a row."""
    first = cgutils.alloca_once(builder, values[0].type, len(values))
    for k, value in enumerate(values):
        builder.store(value, builder.gep(first, [ir.Constant(ir.IntType(32), k)]))
    return first


# ---- around the loops, as in NumPy's functions ---------------------------------------------------------------------


@dataclass
class _Transform:
    """How one NumPy function uses a loop.

    Parameters
    ----------
    ufuncs : tuple of ufunc
        The ufunc of the loop; two, where that of odd sizes is another.
    given : str
        The types that it accepts, single and double.
    size : function
        The size of the transform, as a function of the size of the axis, where the call states none.
    size_out : function
        The size of the axis of the result, as a function of that of the transform.
    inverse : bool
        Whether the result is divided by the size where the call states no norm.
    """

    ufuncs: tuple[np.ufunc, ...]
    given: str
    size: Callable[[Any], Any]
    size_out: Callable[[Any], Any]
    inverse: bool = False

    def result(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The type of the results for that of the arguments."""
        (found,) = (signature[-1] for signature in self.ufuncs[0].types if signature[0] == dtype.char)
        return np.dtype(found)


def _provide(func: Any, transform: _Transform) -> None:
    """Let numba compile calls of one function."""
    for ufunc in transform.ufuncs:
        _name_loops(ufunc)
    default, size_out = transform.size, transform.size_out

    @overload(func, prefer_literal=True)
    def chosen(a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
        divisor = _divisor(norm, transform.inverse)
        if not isinstance(a, types.Array) or not a.ndim or divisor is None:
            return None
        if a.dtype in types.complex_domain and "d" in transform.given:
            return None
        single, double = map(np.dtype, transform.given)
        # NumPy computes in single precision only for native single input that has a single-precision divisor
        dtype = single if a.dtype == from_dtype(single) and divisor is not _unit else double
        is_single = a.dtype in (types.float32, types.complex64)
        dtype_loop, dtype_out = transform.result(dtype), transform.result(single if is_single else double)
        is_ready = a.layout == "C" and a.dtype == from_dtype(dtype)
        call, rank = _call_of(transform.ufuncs, dtype), a.ndim
        real = np.float32 if is_single else np.float64

        def implementation(a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
            k = axis % rank
            length = a.shape[k]
            size = default(length) if n is None else n
            length_out = size_out(size)
            before = after = 1
            for j in range(rank):
                if j < k:
                    before *= a.shape[j]
                elif j > k:
                    after *= a.shape[j]
            x = a if is_ready else np.ascontiguousarray(a).astype(dtype)
            out = np.empty(tuple_setitem(a.shape, k, length_out), dtype_loop)
            scale = real(1.0) / divisor(real(size))
            if after == 1:
                call(x, out, scale, size, (0, 0, before, length, length_out, length, length_out, 1, 1))
            else:
                for j in range(before):
                    start, start_out = j * length * after, j * length_out * after
                    call(x, out, scale, size, (start, start_out, after, length, length_out, 1, 1, after, after))
            return out.astype(dtype_out) if dtype_out != dtype_loop else out

        return implementation


def _divisor(norm: Any, inverse: bool) -> Any:
    """The divisor of the result, for the type of `norm` and the size; None for a type that does not determine it."""
    name = getattr(norm, "literal_value", getattr(norm, "value", norm))
    if name == "ortho":
        return np.sqrt
    if name in (None, types.none, "backward", "forward"):
        return _same if inverse != (name == "forward") else _unit
    return None


@njit
def _same(size: Any) -> Any:
    return size


@njit
def _half(size: Any) -> Any:
    return size // 2 + 1


@njit
def _doubled(size: Any) -> Any:
    return 2 * (size - 1)


@njit
def _unit(size: Any) -> Any:
    """One, in the precision of the size."""
    return size / size
