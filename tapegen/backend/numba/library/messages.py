"""Messages of compiled code: what `intrinsics.tell` compiles to, and the Python function that it calls.

Compiled code refers to that function by a symbol, so that cached code finds it in another process.
"""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"

from __future__ import annotations

import ctypes
import functools
import importlib
import json
import logging
import sys
import threading
import warnings
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin
from numba.np.numpy_support import as_dtype

from tapegen.errors import frames_of_tapegen
from tapegen.ir import intrinsics, progress_bars

FAILED = "a message could not be written"
"""The text of the `RuntimeError` that compiled code raises where writing a message raised `failure()`."""

_SYMBOL = "tapegen_tell"
_WORD = ir.IntType(64)


# ---- in compiled code ------------------------------------------------------------------------------------------------


@functools.cache
def provide() -> None:
    """Let numba compile `intrinsics.tell`, and register the function that it calls in LLVM."""
    llvm.add_symbol(_SYMBOL, ctypes.cast(_write_message, ctypes.c_void_p).value)
    infer_global(intrinsics.tell)(_Tell)
    lower_builtin(intrinsics.tell, types.unicode_type, types.VarArg(types.Any))(_lower)


class _Tell(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.none, *args) if all(map(_code, args[1:])) else None


def _code(type_: Any) -> str:
    """The code of a type that can be handed over: a type of NumPy, for arrays after the number of their axes."""
    if isinstance(type_, types.Array):
        return f"{type_.ndim}{as_dtype(type_.dtype).str}"
    if isinstance(type_, types.Boolean | types.Integer | types.Float | types.Complex):
        return str(as_dtype(type_).str)
    return ""


def _lower(context: Any, builder: ir.IRBuilder, typed: Any, args: Sequence[Any]) -> Any:
    """Store the values in words of 64 bits, and call Python."""
    template = context.make_helper(builder, types.unicode_type, args[0])
    words: list[ir.Value] = []
    for type_, value in zip(typed.args[1:], args[1:], strict=True):
        words += _words(context, builder, type_, value)
    codes = context.insert_const_string(builder.module, ";".join(map(_code, typed.args[1:])))
    room = cgutils.alloca_once(builder, _WORD, size=max(len(words), 1))
    for k, word in enumerate(words):
        builder.store(word, builder.gep(room, [_WORD(k)], source_etype=_WORD))
    pointers = [template.data, codes, room]
    addresses = [builder.ptrtoint(pointer, _WORD) for pointer in pointers]
    kind = ir.FunctionType(ir.IntType(32), [_WORD] * 4)
    function = cgutils.get_or_insert_function(builder.module, kind, _SYMBOL)
    failed = builder.call(function, [addresses[0], template.length, addresses[1], addresses[2]])
    with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, failed)):
        context.call_conv.return_user_exc(builder, RuntimeError, (FAILED,))
    return context.get_dummy_value()


def _words(context: Any, builder: ir.IRBuilder, type_: Any, value: ir.Value) -> list[ir.Value]:
    if isinstance(type_, types.Array):
        array = context.make_array(type_)(context, builder, value)
        extents = cgutils.unpack_tuple(builder, array.shape, type_.ndim)
        steps = cgutils.unpack_tuple(builder, array.strides, type_.ndim)
        return [builder.ptrtoint(array.data, _WORD), *extents, *steps]
    if isinstance(type_, types.Complex):
        number = context.make_complex(builder, type_, value)
        return [word for part in (number.real, number.imag) for word in _float_word(builder, part)]
    if isinstance(type_, types.Float):
        return _float_word(builder, value)
    if isinstance(type_, types.Boolean):
        return [builder.zext(context.cast(builder, value, type_, types.uint8), _WORD)]
    widened = types.int64 if type_.signed else types.uint64
    return [context.cast(builder, value, type_, widened)]


def _float_word(builder: ir.IRBuilder, value: ir.Value) -> list[ir.Value]:
    double = ir.DoubleType()
    return [builder.bitcast(value if value.type == double else builder.fpext(value, double), _WORD)]


# ---- in Python -------------------------------------------------------------------------------------------------------


class _Thread(threading.local):
    count = 0
    error: BaseException | None = None


_thread = _Thread()


def count() -> int:
    """How many messages compiled code has written in this thread."""
    return _thread.count


def failure() -> BaseException | None:
    """What writing a message raised in this thread, once."""
    error, _thread.error = _thread.error, None
    return error


@ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
def _write_message(template: int, length: int, codes: int, words: int) -> int:
    """Write one message; 1 if that raised an exception."""
    try:
        target, pieces, kwargs, dtypes = _parsed(ctypes.string_at(template, length))
        values = _values(ctypes.string_at(codes).decode(), dtypes, words)
        _write(target, [_shown(piece, values) for piece in pieces], kwargs)
        _thread.count += 1
    except BaseException as error:  # an exception cannot pass through machine code
        _thread.error = error
        return 1
    return 0


@functools.lru_cache(maxsize=1024)
def _parsed(template: bytes) -> Any:
    return json.loads(template)


def _write(target: list[Any], args: list[Any], kwargs: dict[str, Any]) -> None:
    match target:
        case ["print"]:
            if kwargs.get("file") is not None:
                kwargs = {**kwargs, "file": getattr(sys, kwargs["file"])}
            print(*args, **kwargs)
        case ["progress", name]:
            getattr(progress_bars, name)(*args, **kwargs)
        case ["logging", name]:
            getattr(logging, name)(*args, **kwargs)
        case ["logger", owner, name]:
            getattr(logging.getLogger(owner), name)(*args, **kwargs)
        case ["warn", module, name, file, line, callers]:
            category = getattr(importlib.import_module(module), name)
            if callers:
                warnings.warn(args[0], category, stacklevel=frames_of_tapegen() + callers - 1)
            else:
                _warn(args[0], category, file, line)


def _warn(text: str, category: type[Warning], file: str, line: int) -> None:
    """Warn as the line of the user does: filters see its module, which remembers what it has warned of."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == file:
            seen = module.__dict__.setdefault("__warningregistry__", {})
            warnings.warn_explicit(text, category, file, line, module.__name__, seen, module.__dict__)
            return
    warnings.warn_explicit(text, category, file, line, registry=_seen)


_seen: dict[Any, Any] = {}  # what lines have warned of that belong to no module


def _values(codes: str, dtypes: Sequence[str], words: int) -> list[Any]:
    """The values behind the template."""
    found: list[Any] = []
    at = words
    for code, name in zip(filter(None, codes.split(";")), dtypes, strict=True):
        value, count = _array(code, at) if code[0].isdigit() else _number(code, at)
        at += 8 * count
        found.append(np.dtype(name).type(value) if name else value)
    return found


def _number(code: str, at: int) -> tuple[Any, int]:
    """A number of Python, and how many words it takes."""
    kind = np.dtype(code).kind
    if kind == "c":
        real, imaginary = (ctypes.c_double * 2).from_address(at)
        return complex(real, imaginary), 2
    if kind == "f":
        return ctypes.c_double.from_address(at).value, 1
    word = (ctypes.c_uint64 if kind == "u" else ctypes.c_int64).from_address(at).value
    return bool(word) if kind == "b" else word, 1


def _array(code: str, at: int) -> tuple[np.ndarray, int]:
    """A copy of an array: handlers of logging may keep what they are given."""
    digits = len(code) - len(code.lstrip("0123456789"))
    rank = int(code[:digits])
    words = (ctypes.c_int64 * (1 + 2 * rank)).from_address(at)
    place = _Memory(words[0], tuple(words[1 : 1 + rank]), tuple(words[1 + rank :]), code[digits:])
    return np.array(place), 1 + 2 * rank


class _Memory:
    """Memory of compiled code as an array."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], code: str) -> None:
        place = (address, True)
        self.__array_interface__ = {"data": place, "shape": shape, "strides": strides, "typestr": code, "version": 3}


def _shown(piece: Any, values: Sequence[Any]) -> Any:
    """An argument of a message."""
    match piece:
        case str():
            return piece
        case int():
            return values[piece]
        case ["constant", value]:
            return value
        case ["format", part, how]:
            return format(_shown(part, values), how)
        case ["repr", part]:
            return repr(_shown(part, values))
        case ["fstring", *parts]:
            return "".join(str(_shown(part, values)) for part in parts)
        case ["tuple", *parts]:
            return tuple(_shown(part, values) for part in parts)
        case [_, *parts]:
            return [_shown(part, values) for part in parts]
