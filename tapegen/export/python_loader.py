"""Loader of a library: the code by which its Python module calls it, part of each such module; it needs only NumPy.

All names begin with an underscore, so that the functions of the user may have any other.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import ctypes
import functools
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_SHAPE, _FIRST_ERROR = 4, 16


class _Library:
    """A shared library next to this file."""

    def __init__(self, directory: Path, file: str, prefix: str, abi: int) -> None:
        for k in range(20):  # a path that was loaded before denotes the old library: use another spelling
            self.native = ctypes.CDLL(f"{directory}/{'./' * k}{file}")
            number = getattr(self.native, f"{prefix}_abi", int)
            if number() & 0xFFFFFFFF == abi:
                break
        else:
            raise ImportError(f"{directory / file} is not the library that this module was built with; build both anew")
        self.text = getattr(self.native, f"{prefix}_strerror")
        self.text.restype = ctypes.c_char_p
        np.empty(2**25 - 2**16, np.uint8)  # freed at once: glibc then keeps freed memory for the next call

    def error(self, status: int) -> Exception:
        """The exception for a status."""
        text = self.text(status).decode()
        if status < _FIRST_ERROR:
            return {1: MemoryError, 2: OSError}.get(status, ValueError)(text)
        kind, _, message = text.partition(": ")
        found = getattr(builtins, kind, None)
        if isinstance(found, type) and issubclass(found, Exception):
            return found(message) if message else found()
        return RuntimeError(text)


class _Number:
    """A scalar parameter; a `tangent` may be None, which is zero."""

    def __init__(self, name: str, dtype: str, *, tangent: bool = False) -> None:
        self.name, self.dtype, self.tangent = name, np.dtype(dtype), tangent
        parts = np.empty(0, self.dtype).real.dtype
        self.type = np.ctypeslib.as_ctypes_type(parts)

    def given(self, value: Any) -> list[Any]:
        """The C argument for a value."""
        if value is None and self.tangent:
            value = 0
        kinds: tuple[type, ...] = (int, float, np.integer, np.floating)
        if self.dtype.kind == "c":
            kinds += (complex, np.complexfloating)
        if isinstance(value, bool | np.bool_) or not isinstance(value, kinds):
            raise TypeError(f"{self.name} must be a number, not {type(value).__name__}")
        if self.dtype.kind == "c":
            pair = complex(value)  # type: ignore[call-overload]
            return [(self.type * 2)(pair.real, pair.imag)]
        if self.dtype.kind != "f":
            if not isinstance(value, int | np.integer):
                raise TypeError(f"{self.name} must be an integer, not {type(value).__name__}")
            limits = np.iinfo(self.dtype)
            if not limits.min <= value <= limits.max:
                raise OverflowError(f"{self.name} = {value} does not fit into {self.dtype}")
        return [self.type(value)]


class _Array:
    """An array parameter; `like` names the parameter or result whose shape a tangent or cotangent has."""

    def __init__(
        self, name: str, dtype: str, rank: int, layout: str, written: bool = False, like: str | None = None
    ) -> None:
        self.name, self.dtype, self.rank, self.layout = name, np.dtype(dtype), rank, layout
        self.written, self.like = written, like

    def checked(self, value: Any, shapes: dict[str, tuple[int, ...]]) -> np.ndarray:
        """The array, if it has the properties the library was built for; its shape is added to `shapes`."""
        if self.like is not None:  # anything of the right shape
            shape = shapes[self.like]
            if self.dtype.kind != "c" and np.iscomplexobj(value):
                raise TypeError(f"{self.name} must be real")
            value = np.array(np.zeros(shape) if value is None else value, self.dtype, order=self.order)
            if value.shape != shape:
                raise ValueError(f"{self.name} must have the shape {shape}, not {value.shape}")
        wanted = f"{self.name} must be a NumPy array of {self.dtype} with rank {self.rank}"
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{wanted}, not {type(value).__name__}")
        if value.dtype != self.dtype or value.ndim != self.rank:
            raise TypeError(f"{wanted}; it has dtype {value.dtype} and rank {value.ndim}")
        flags = value.flags
        if not flags.aligned or any(stride % value.itemsize for stride in value.strides):
            raise ValueError(f"{self.name} is not aligned in memory; pass a copy")
        if (self.layout == "C" and not flags.c_contiguous) or (self.layout == "F" and not flags.f_contiguous):
            function = "ascontiguousarray" if self.layout == "C" else "asfortranarray"
            raise ValueError(f"{self.name} must be contiguous ({self.layout} order); pass np.{function}({self.name})")
        if self.written and not flags.writeable:
            raise ValueError(f"{self.name} is written, and it is read-only; pass a copy")
        shapes[self.name] = value.shape
        return value

    @property
    def order(self) -> Any:
        """The memory order of an array created for this parameter."""
        return "F" if self.layout == "F" else "C"

    def given(self, value: np.ndarray) -> list[Any]:
        """The C argument for a checked array."""
        found: list[Any] = [ctypes.c_void_p(value.ctypes.data)]
        if self.like is None:
            found += map(ctypes.c_int64, value.shape)
        if self.layout == "A":
            found += [ctypes.c_int64(stride // value.itemsize) for stride in value.strides]
        return found


class _Result:
    """A result; `like` names the parameter whose shape an array has, `python` is true for a Python scalar."""

    def __init__(
        self, dtype: str, rank: int = 0, like: str | None = None, *, array: bool = False, python: bool = False
    ):
        self.dtype, self.rank, self.like, self.array, self.python = np.dtype(dtype), rank, like, array, python

    @property
    def is_free(self) -> bool:
        """Whether the shape is known only after the call."""
        return self.rank > 0 and self.like is None

    def taken(self, memory: np.ndarray) -> Any:
        """The result from the memory it was written to."""
        if self.array:
            return memory
        return memory[()].item() if self.python else memory[()]


class _Function:
    """A C function: flat arguments in, list of results out."""

    def __init__(
        self, library: _Library, name: str, parameters: Sequence[_Number | _Array], results: Sequence[_Result]
    ) -> None:
        self.library, self.native = library, getattr(library.native, name)
        self.parameters, self.results = parameters, results
        self.shapes: dict[Any, list[tuple[int, ...]]] = {}  # of free results, by those of the arguments

    def __call__(self, *values: Any, tape: _Tape | None = None, record: _Tape | None = None) -> list[Any]:
        sizes: dict[str, tuple[int, ...]] = {} if tape is None else dict(tape.shapes)
        arrays = [
            (parameter, parameter.checked(value, sizes))
            for parameter, value in zip(self.parameters, values, strict=True)
            if isinstance(parameter, _Array)
        ]
        for parameter, value in arrays:
            if parameter.written and any(
                other is not parameter and np.shares_memory(value, array) for other, array in arrays
            ):
                raise ValueError(f"{parameter.name} is written and shares memory with another argument; pass a copy")
        free = [result for result in self.results if result.is_free]
        key = tuple(value.shape for _, value in arrays)
        known = self.shapes.get(key)
        while True:
            # a call that fails, or must be repeated, leaves the arrays of the caller as they were
            work = [(value, value.copy(order="K") if parameter.written else value) for parameter, value in arrays]
            ready = iter(work)
            arguments: list[Any] = [] if tape is None else [tape.handle]
            for each, value in zip(self.parameters, values, strict=True):
                arguments += each.given(next(ready)[1] if isinstance(each, _Array) else value)
            outputs: list[np.ndarray] = []
            buffers: list[Any] = []
            for result in self.results:
                if not result.is_free:
                    shape = () if result.like is None else sizes[result.like]
                    outputs.append(np.empty(shape, result.dtype))
                    arguments.append(ctypes.c_void_p(outputs[-1].ctypes.data))
                    continue
                shape = (0,) * result.rank if known is None else known[len(buffers)]
                outputs.append(np.empty(shape, result.dtype))
                buffers.append((ctypes.c_int64 * result.rank)(*shape))
                arguments += [ctypes.c_void_p(outputs[-1].ctypes.data), buffers[-1]]
            if record is not None:
                arguments.append(ctypes.byref(record.handle))
            with contextlib.nullcontext() if tape is None else tape.lock:
                status = self.native(*arguments)
            if status == _SHAPE and free:
                known = [tuple(buffer) for buffer in buffers]
                continue
            if status != 0:
                raise self.library.error(status)
            if free:
                self.shapes[key] = [tuple(buffer) for buffer in buffers]
            for value, copy in work:
                if copy is not value:
                    value[...] = copy
            if record is not None:
                record.shapes = sizes
            return [result.taken(memory) for result, memory in zip(self.results, outputs, strict=True)]


class _Tape:
    """What a forward sweep has recorded; freed with this object.

    `shapes` holds those of the arguments by their names, and of the results that have cotangents by their positions.
    """

    def __init__(self, library: _Library, name: str) -> None:
        self.handle = ctypes.c_void_p()
        self.lock = threading.Lock()
        self.shapes: dict[str, tuple[int, ...]] = {}
        free = getattr(library.native, f"{name}_free")
        handle = self.handle
        weakref.finalize(self, lambda: free(handle))


def _vjp(
    record: _Function,
    pullback: _Function,
    tape_name: str,
    leaves: Sequence[Any],
    value_of: Callable[[list[Any]], Any],
    seeds_of: Callable[[Any], dict[int, Any]],
    cotangents_of: Callable[[list[Any]], Any],
) -> tuple[Any, Callable[[Any], Any]]:
    """The value, and the pullback of its cotangents."""
    tape = _Tape(record.library, tape_name)
    found = record(*leaves, record=tape)
    tape.shapes |= {str(k): np.shape(each) for k, each in enumerate(found)}

    def pull(value_bar: Any) -> Any:
        """Cotangents of the arguments for those of the value."""
        seeds = [_seed(bar, tape.shapes[str(k)]) for k, bar in seeds_of(value_bar).items()]
        return cotangents_of(pullback(*seeds, tape=tape))

    return value_of(found), pull


def _with_aux(both: tuple[Any, Any], pull: Callable[[Any], Any]) -> tuple[Any, Callable[[Any], Any], Any]:
    """Objective, pullback, and the auxiliary result."""
    value, aux = both
    return value, pull, aux


def _seed(bar: Any, shape: tuple[int, ...]) -> Any:
    """The cotangent of a result; ValueError if it has another shape."""
    if np.shape(bar) != shape:
        raise ValueError(f"the cotangent has shape {np.shape(bar)}, the result {shape}")
    return bar if shape else np.asarray(bar).item()


def _directed(
    leaves_of: Callable[..., Any],
    tangents_of: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    constants: dict[str, Any],
) -> list[Any]:
    """Flat arguments and their tangents."""
    if len(primals) != len(tangents):
        raise ValueError(f"{len(primals)} arguments have {len(tangents)} tangents")
    return [*leaves_of(*primals, **constants), *tangents_of(*tangents)]


def _same(name: str, value: Any, fixed: Any) -> None:
    """Raise ValueError for an argument whose value differs from the one the library was built for."""
    if type(value) is not type(fixed) or repr(value) != repr(fixed):
        raise ValueError(f"the library was built for {name} = {fixed!r}, not {value!r}")


def _built_in(name: str, value: Any) -> None:
    """Raise ValueError for an argument that is part of the library, and passed again."""
    if value is not None:
        raise ValueError(f"{name} is part of the library and cannot be changed; give None")


def _container(name: str, value: Any, kind: str, keys: Sequence[Any]) -> None:
    """Raise TypeError or ValueError for a structure of another kind or with other parts."""
    if not isinstance(value, getattr(builtins, kind)):
        raise TypeError(f"{name} must be a {kind}, not {type(value).__name__}")
    if (set(value) != set(keys)) if kind == "dict" else (len(value) != len(keys)):
        wanted = f"the keys {', '.join(map(repr, keys))}" if kind == "dict" else f"length {len(keys)}"
        raise ValueError(f"the library was built for {name} with {wanted}")


def _constant(name: str, *tangents: Any) -> None:
    """Raise ValueError for a tangent of an argument that has none."""
    if any(tangent is not None for tangent in tangents):
        raise ValueError(f"the library has no derivative with respect to {name}; give None as its tangent")


@functools.cache
def _named(name: str, *fields: str) -> Any:
    """A class of named tuples."""
    return collections.namedtuple(name, fields)


def _object(**attributes: Any) -> Any:
    """An object with these attributes."""
    return types.SimpleNamespace(**attributes)
