"""Interrupts: the function by which compiled code polls for Ctrl-C, and what handlers of signals raise."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import contextlib
import ctypes
import functools
import inspect
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir as llvm_ir
from llvmlite.ir import IRBuilder, Value

from tapegen.backend.numba import memory_limit

POLL = "tapegen_interrupted"
"""The function that compiled code calls: after how many iterations a loop polls again; 0 if Ctrl-C was pressed."""

FIRST, LONGEST = 16, 2**16
"""Iterations of a loop before its first poll, and the most between two polls."""

_SHORT, _LONG = 10**6, 5 * 10**7
"""Nanoseconds between two polls: after less it polls more rarely, after more more often."""

_CHECKS = 10**8
"""Nanoseconds between two checks of signals, which take the interpreter's lock."""

_NUMBER, _FLAG = llvm_ir.IntType(64), llvm_ir.IntType(32)
_POINTER = llvm_ir.PointerType(_NUMBER)


_times = (ctypes.c_int64 * 2)()
"""When it was called last, and when it checked for signals last, in nanoseconds."""

_main = ctypes.c_int64(0)
"""The thread that runs the handlers of signals."""

_engines: list[Any] = []


def _note_main_thread() -> None:
    _main.value = threading.main_thread().ident or 0


@functools.cache
def provide() -> None:
    """Register the function in LLVM, so that compiled code finds it by its name."""
    memory_limit.provide()
    _note_main_thread()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_note_main_thread)
    module = llvm_ir.Module("tapegen_interrupts")
    module.triple = llvm.get_process_triple()
    polls = llvm_ir.Function(module, llvm_ir.FunctionType(_NUMBER, [_POINTER]), f"{POLL}_here")
    (length,) = polls.args
    builder = IRBuilder(polls.append_basic_block())
    call = memory_limit.call_python
    called_at, checked_at, main = (
        _NUMBER(address).inttoptr(_POINTER)
        for address in (ctypes.addressof(_times), ctypes.addressof(_times) + 8, ctypes.addressof(_main))
    )
    is_main = builder.icmp_unsigned(
        "==", call(builder, "PyThread_get_thread_ident", _NUMBER), builder.load(main, typ=_NUMBER)
    )
    with builder.if_then(builder.not_(is_main)):  # the handlers run in another thread, perhaps that of this call
        builder.store(_NUMBER(LONGEST), length)
        stopped = builder.icmp_signed("!=", builder.load_atomic(_stop(builder), "monotonic", 8), _NUMBER(0))
        builder.ret(builder.select(stopped, _NUMBER(0), _NUMBER(LONGEST)))
    now = _clock(builder)
    passed = builder.sub(now, builder.load(called_at, typ=_NUMBER))
    builder.store(now, called_at)
    old = builder.load(length, typ=_NUMBER)
    longer, shorter = builder.shl(old, _NUMBER(2)), builder.lshr(old, _NUMBER(4))
    longer = builder.select(builder.icmp_unsigned("<", longer, _NUMBER(LONGEST)), longer, _NUMBER(LONGEST))
    shorter = builder.select(builder.icmp_unsigned(">", shorter, _NUMBER(1)), shorter, _NUMBER(1))
    is_long = builder.icmp_signed(">", passed, _NUMBER(_LONG))
    new = builder.select(
        is_long, shorter, builder.select(builder.icmp_signed("<", passed, _NUMBER(_SHORT)), longer, old)
    )
    builder.store(new, length)
    since = builder.sub(now, builder.load(checked_at, typ=_NUMBER))
    with builder.if_then(builder.icmp_signed(">", since, _NUMBER(_CHECKS))):
        builder.store(now, checked_at)
        state = call(builder, "PyGILState_Ensure", _FLAG)
        raised = call(builder, "PyErr_CheckSignals", _FLAG)  # runs the handlers; what they raise is kept
        call(builder, "PyGILState_Release", llvm_ir.VoidType(), state)
        with builder.if_then(builder.icmp_signed("!=", raised, _FLAG(0)), likely=False):
            builder.store_atomic(_NUMBER(1), _stop(builder), "monotonic", 8)
            builder.ret(_NUMBER(0))
    builder.ret(new)
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(str(module)), llvm.Target.from_default_triple().create_target_machine()
    )
    engine.finalize_object()
    llvm.add_symbol(POLL, engine.get_function_address(f"{POLL}_here"))
    _engines.append(engine)


def _stop(builder: IRBuilder) -> Value:
    """Emit the address of the mark of this thread's call."""
    return memory_limit.field(builder, memory_limit.account_of_call(builder), memory_limit.INTERRUPTED)


def _clock(builder: IRBuilder) -> Value:
    """Emit the time in nanoseconds."""
    if sys.platform == "win32":
        kind = llvm_ir.FunctionType(_NUMBER, [])
        ticks = builder.call(llvm_ir.Function(builder.module, kind, "GetTickCount64"), [])
        return builder.mul(ticks, _NUMBER(10**6))
    place = builder.alloca(llvm_ir.ArrayType(_NUMBER, 2))
    kind = llvm_ir.FunctionType(_FLAG, [_FLAG, place.type])
    clock = llvm_ir.Function(builder.module, kind, "clock_gettime")
    builder.call(clock, [_FLAG(time.CLOCK_MONOTONIC), place])
    seconds, rest = (builder.load(builder.gep(place, [_FLAG(0), _FLAG(k)])) for k in range(2))
    return builder.add(builder.mul(seconds, _NUMBER(10**9)), rest)


def is_of_signal_handler(error: BaseException) -> bool:
    """Whether a handler of signals has raised an error: it ends the call, and says nothing of the code that ran."""
    codes = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Raise at the end what handlers of signals raise within, where ctypes would print it and go on.

    LLVM calls Python when it has made machine code.  A signal that came meanwhile is handled there, and no error leaves
    a function that C calls.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = sys.unraisablehook
    lost: list[BaseException] = []

    def note(found: Any) -> None:
        error = found.exc_value
        if isinstance(error, KeyboardInterrupt) or (error is not None and is_of_signal_handler(error)):
            lost.append(error)
        else:
            before(found)

    sys.unraisablehook = note
    try:
        yield
    finally:
        if sys.unraisablehook is note:
            sys.unraisablehook = before
    if lost:
        raise lost[0]


def _code_of(handler: Any) -> CodeType | None:
    """The code of a function, a method, a partial function or an object that can be called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not isinstance(handler, FunctionType | MethodType):
        handler = inspect.getattr_static(type(handler), "__call__", None)
    return getattr(handler, "__code__", None)
