"""How the Python module of a library calls it: its text is part of each such module, and needs NumPy alone."""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

SHAPE, FIRST_ERROR = 4, 16


class Library:
    """A shared library beside this file."""

    def __init__(self, directory: Path, file: str, prefix: str) -> None:
        self.native = ctypes.CDLL(str(directory / file))
        self.text = getattr(self.native, f"{prefix}_strerror")
        self.text.restype = ctypes.c_char_p
        np.empty(2**25 - 2**16, np.uint8)  # freed at once: glibc then keeps freed memory for the next call

    def error(self, status: int) -> Exception:
        """The exception for a status."""
        text = self.text(status).decode()
        if status < FIRST_ERROR:
            return {1: MemoryError, 2: OSError}.get(status, ValueError)(text)
        kind, _, message = text.partition(": ")
        found = getattr(builtins, kind, None)
        if isinstance(found, type) and issubclass(found, Exception):
            return found(message) if message else found()
        return RuntimeError(text)


class Number:
    """A parameter that is a number."""

    def __init__(self, name: str, dtype: str) -> None:
        self.name, self.dtype = name, np.dtype(dtype)
        self.type = np.ctypeslib.as_ctypes_type(self.dtype)

    def given(self, value: Any, shapes: dict[str, tuple[int, ...]]) -> list[Any]:
        """What the C function gets for a value."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
            raise TypeError(f"{self.name} must be a number, not {type(value).__name__}")
        if self.dtype.kind != "f":
            if not isinstance(value, int | np.integer):
                raise TypeError(f"{self.name} must be an integer, not {type(value).__name__}")
            limits = np.iinfo(self.dtype)
            if not limits.min <= value <= limits.max:
                raise OverflowError(f"{self.name} = {value} does not fit into {self.dtype}")
        return [self.type(value)]


class Array:
    """A parameter that is an array; `like` names the parameter whose shape it has."""

    def __init__(
        self, name: str, dtype: str, rank: int, layout: str, written: bool = False, like: str | None = None
    ) -> None:
        self.name, self.dtype, self.rank, self.layout = name, np.dtype(dtype), rank, layout
        self.written, self.like = written, like

    def checked(self, value: Any) -> np.ndarray:
        """The array, if it is as the library was built for."""
        if self.like is not None:  # tangents and cotangents may be anything of the right shape
            value = np.array(value, self.dtype, order="F" if self.layout == "F" else "C")
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
        return value

    def given(self, value: np.ndarray, shapes: dict[str, tuple[int, ...]]) -> list[Any]:
        """What the C function gets for a checked array."""
        found: list[Any] = [ctypes.c_void_p(value.ctypes.data)]
        if self.like is None:
            shapes[self.name] = value.shape
            found += map(ctypes.c_int64, value.shape)
        elif self.like in shapes and value.shape != shapes[self.like]:
            raise ValueError(f"{self.name} must have the shape {shapes[self.like]} of {self.like}, not {value.shape}")
        if self.layout == "A":
            found += [ctypes.c_int64(stride // value.itemsize) for stride in value.strides]
        return found


class Result:
    """A result; `like` names the parameter whose shape an array has, `python` tells a Python number."""

    def __init__(
        self, dtype: str, rank: int = 0, like: str | None = None, *, array: bool = False, python: bool = False
    ):
        self.dtype, self.rank, self.like, self.array, self.python = np.dtype(dtype), rank, like, array, python

    @property
    def is_free(self) -> bool:
        """Whether only the call itself tells the shape."""
        return self.rank > 0 and self.like is None

    def taken(self, memory: np.ndarray) -> Any:
        """The result from the memory it was written to."""
        if self.array:
            return memory
        return memory[()].item() if self.python else memory[()]


class Function:
    """A C function: flat arguments in, list of results out."""

    def __init__(
        self, library: Library, name: str, parameters: Sequence[Number | Array], results: Sequence[Result]
    ) -> None:
        self.library, self.native = library, getattr(library.native, name)
        self.parameters, self.results = parameters, results
        self.shapes: dict[Any, list[tuple[int, ...]]] = {}  # of free results, by those of the arguments

    def __call__(
        self, *values: Any, tape: Tape | None = None, record: Tape | None = None, shapes: dict[str, Any] | None = None
    ) -> list[Any]:
        arrays = [
            (parameter, parameter.checked(value))
            for parameter, value in zip(self.parameters, values, strict=True)
            if isinstance(parameter, Array)
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
            work = {id(value): value.copy(order="K") for parameter, value in arrays if parameter.written}
            sizes: dict[str, tuple[int, ...]] = dict(shapes or {})
            arguments: list[Any] = [] if tape is None else [tape.handle]
            for each, value in zip(self.parameters, values, strict=True):
                arguments += each.given(work.get(id(value), value), sizes)
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
            if status == SHAPE and free:
                known = [tuple(buffer) for buffer in buffers]
                continue
            if status != 0:
                raise self.library.error(status)
            if free:
                self.shapes[key] = [tuple(buffer) for buffer in buffers]
            for _, value in arrays:
                if id(value) in work:
                    value[...] = work[id(value)]
            return [result.taken(memory) for result, memory in zip(self.results, outputs, strict=True)]


class Tape:
    """What a forward sweep has recorded; freed with this object."""

    def __init__(self, library: Library, name: str) -> None:
        self.handle = ctypes.c_void_p()
        self.lock = threading.Lock()
        free = getattr(library.native, f"{name}_free")
        handle = self.handle
        weakref.finalize(self, lambda: free(handle))


def same(name: str, value: Any, fixed: Any) -> None:
    """Raise ValueError for an argument that has another value than the library was built for."""
    if type(value) is not type(fixed) or value != fixed:
        raise ValueError(f"the library was built for {name} = {fixed!r}, not {value!r}")


def constant(name: str, tangent: Any) -> None:
    """Raise ValueError for a tangent of an argument that has none."""
    if tangent is not None:
        raise ValueError(f"the library has no derivative with respect to {name}; give None as its tangent")


def seed(bar: Any, value: Any) -> Any:
    """The cotangent of a result; ValueError if it has another shape."""
    if np.shape(bar) != np.shape(value):
        raise ValueError(f"the cotangent has shape {np.shape(bar)}, the result {np.shape(value)}")
    return np.array(bar, value.dtype) if isinstance(value, np.ndarray) else float(bar)
