"""Thread pool: threads of this process that run the chunks of parallel loops without the interpreter.

The threads are those of the operating system, and know nothing of Python: compiled code wakes them, takes part itself,
and returns when all chunks are done.  One loop at a time has the threads; where another thread of Python begins one
meanwhile, that one runs its chunks alone, as do loops inside of chunks.  No caller waits for another one, so that there
is nothing to deadlock.  A forked process has no other threads, and runs all chunks in the one that it has.

Which thread runs a chunk is not determined; what the chunks are follows from the sizes of arrays alone.
"""

# mypy: disable-error-code="no-untyped-call, attr-defined"

from __future__ import annotations

import ctypes
import functools
import os
import platform
from pathlib import Path
from string import Template
from typing import Any

import llvmlite.binding as llvm

from tapegen.backend.background.availability import is_worker, processors
from tapegen.backend.numba.early_exits import interrupts
from tapegen.settings import config, when_changed

MOST = 256
"""Threads beside the caller's."""

RUN = "tapegen_run_chunks"
"""The function that compiled code calls with a function, its context, and the number of chunks."""

_SPINS = 400
"""How often a thread looks for the next loop before it sleeps, about 10 microseconds: less than waking it takes."""

_WAIT = 100_000
"""Microseconds after which a caller that waits for other threads looks for interrupts."""

_X86 = ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()")
_ARM = ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)")
_PAUSES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}
"""By the kind of processor: the instruction by which a waiting thread lets the other one on its core run."""


class _Pool:
    """The functions of pool.ll in this process, and its threads."""

    def __init__(self) -> None:
        python = ctypes.pythonapi
        declared, pause = _PAUSES.get(platform.machine().lower(), ("", ""))
        text = Template((Path(__file__).parent / "pool.ll").read_text(encoding="utf-8")).substitute(
            most=MOST,
            spins=_SPINS,
            declared=declared,
            pause=pause,
            acquire=_address(python.PyThread_acquire_lock),
            acquire_for=_address(python.PyThread_acquire_lock_timed),
            release=_address(python.PyThread_release_lock),
            wait=_WAIT,
            often=interrupts.LONGEST,
        )
        module = llvm.parse_assembly(text)
        module.triple = llvm.get_process_triple()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        self.started = 0
        self._enter = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(self.address("enter"))
        self._use = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_void_p)(self.address("use"))
        self._forked = ctypes.CFUNCTYPE(None)(self.address("forked"))
        self._is_forked = False
        self._done = _new_lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def address(self, name: str) -> int:
        """Where a function lies."""
        found: int = self._engine.get_function_address(name)
        return found

    def _after_fork(self) -> None:
        self._is_forked = True
        self._forked()

    def use(self, threads: int) -> None:
        """Let loops use so many threads, the caller's included."""
        if self._is_forked:
            return
        wanted = min(threads - 1, MOST)
        start = ctypes.pythonapi.PyThread_start_new_thread
        start.argtypes, start.restype = [ctypes.c_void_p, ctypes.c_void_p], ctypes.c_ulong
        while self.started < wanted:
            self._enter(self.started, _new_lock())
            if start(self.address("helper"), self.started) == ctypes.c_ulong(-1).value:
                break  # the system gives no more
            self.started += 1
        self._use(min(wanted, self.started), self._done)


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


def _new_lock() -> int:
    """A lock that is taken: who acquires it waits until another thread releases it."""
    python = ctypes.pythonapi
    python.PyThread_allocate_lock.restype = ctypes.c_void_p
    made: int | None = python.PyThread_allocate_lock()
    if made is None:
        raise MemoryError
    python.PyThread_acquire_lock(ctypes.c_void_p(made), 1)
    return made


@functools.cache
def _pool() -> _Pool:
    interrupts.provide()
    made = _Pool()
    llvm.add_symbol(RUN, made.address("run"))
    made.use(threads())
    when_changed("threads", lambda: made.use(threads()))
    return made


def provide() -> None:
    """Start the threads, and register the function in LLVM, so that compiled code finds it by its name."""
    _pool()


def threads() -> int:
    """How many threads run the chunks of a loop."""
    if config.threads != "auto":
        return config.threads
    return 1 if is_worker() else max(1, int(processors()))


__all__ = ["MOST", "RUN", "provide", "threads"]
