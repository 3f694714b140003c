"""Workspaces: memory of large arrays that compiled code keeps for its next arrays.

The system maps a large block anew for each allocation, and writes zeros into each page at its first use; for a gradient
of large arrays that may be most of its time.  So blocks of `SMALLEST` bytes and more, once an array dies, wait for the
next array of about their size, in any call of this process.  A block belongs to one array at a time: it waits only when
no array or view of it is left, so concurrent and nested calls share nothing.

The functions are written in LLVM's language, since compiled code calls them without the interpreter, and a result of
compiled code calls them when Python frees it.
"""

# mypy: disable-error-code="no-untyped-call, attr-defined"

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path
from string import Template

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils
from numba.core.runtime import _nrt_python

SMALLEST = 2**15
"""Bytes from which a block is kept.

The allocator of the C library keeps smaller ones, but gives memory at the end of its heap back to the system, which
maps it anew for the next call: so lists of arrays of 100 kB took a third more time.
"""

LARGEST_SUM = 2**30
"""Bytes that may wait at any time."""

BLOCKS = 1024
"""Blocks that are known at a time."""

ROOM, RETAINED = 5, 6
"""Fields of the account of a call with a budget (`memory_limit`): the bytes that new blocks may take before others are
given back, and how many bytes of those that waited when it began may be."""

NEW = "tapegen_new_memory"
"""The function that compiled code calls for the memory of an array."""


class _Allocator(ctypes.Structure):
    """numba's `NRT_ExternalAllocator`."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("malloc", "realloc", "free", "opaque"))


class _Interface(ctypes.Structure):
    """The first functions of numba's `NRT_api_functions`."""

    _fields_ = (("allocate", ctypes.c_void_p), ("allocate_external", ctypes.c_void_p))


class _Functions:
    """The functions of workspaces.ll in this process."""

    def __init__(self) -> None:
        self._table = _Allocator()
        interface = ctypes.cast(
            ctypes.CFUNCTYPE(ctypes.c_void_p)(_nrt_python.c_helpers["get_api"])(), ctypes.POINTER(_Interface)
        ).contents
        is_linux = sys.platform == "linux"
        text = Template((Path(__file__).parent / "workspaces.ll").read_text(encoding="utf-8")).substitute(
            blocks=BLOCKS,
            smallest=SMALLEST,
            most=LARGEST_SUM,
            room=ROOM,
            retained=RETAINED,
            page=2**21 if is_linux else 64,
            advises=str(is_linux).lower(),
            own=_nrt_python.c_helpers["MemInfo_alloc_aligned"],
            external=interface.allocate_external,
            table=ctypes.addressof(self._table),
        )
        module = llvm.parse_assembly(text)
        module.triple = llvm.get_process_triple()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        self._table.malloc, self._table.realloc, self._table.free = map(self.address, ("take", "resize", "give"))
        self.keep = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(self.address("keep"))
        self.account = ctypes.c_void_p.from_address(self._engine.get_global_value_address("account"))
        self.idle = ctypes.CFUNCTYPE(ctypes.c_int64)(self.address("idle"))
        self.forked = ctypes.CFUNCTYPE(None)(self.address("forked"))

    def address(self, name: str) -> int:
        """Where a function lies."""
        found: int = self._engine.get_function_address(name)
        return found


@functools.cache
def _functions() -> _Functions:
    made = _Functions()
    llvm.add_symbol(NEW, made.address("new"))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=made.forked)
    return made


def provide() -> None:
    """Register the function in LLVM, so that compiled code finds it by its name."""
    _functions()


def new_memory(builder: ir.IRBuilder, size: ir.Value, align: ir.Value) -> ir.Value:
    """Emit the call that allocates the memory of an array; a null pointer where there is none."""
    type_ = ir.FunctionType(cgutils.voidptr_t, [size.type, align.type])
    known = cgutils.get_or_insert_function(builder.module, type_, NEW)
    known.return_value.add_attribute("noalias")
    return builder.call(known, [size, align])


def idle() -> int:
    """Bytes that wait for the next array."""
    return _functions().idle() if _functions.cache_info().currsize else 0


def keep(most: int) -> int:
    """Give back memory until at most so many bytes wait for the next array; how many do then."""
    return _functions().keep(most) if _functions.cache_info().currsize else 0


def count_for(account: int) -> None:
    """Count new blocks in the account of a call, which the function at an address finds."""
    _functions().account.value = account


def clear_workspaces() -> int:
    """Return the memory to the system that compiled code keeps for its next arrays.

    Compiled code keeps the memory of arrays of 32 kB and more that are not used any longer, at most 1 GiB in a
    process, since getting it from the system again takes longer than computing with it.

    Returns
    -------
    int
        How many bytes these were.
    """
    before = idle()
    return before - keep(0)


def is_as_expected() -> bool:
    """Whether numba's blocks are laid out as the functions expect: the data of a large array is aligned."""
    allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)(_functions().address("new"))
    block = allocate(SMALLEST, 32)
    data = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(_nrt_python.c_helpers["MemInfo_data"])(block)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_nrt_python.c_helpers["MemInfo_release"])(block)
    return bool(block) and data % 64 == 0 and clear_workspaces() >= SMALLEST


__all__ = ["LARGEST_SUM", "NEW", "SMALLEST", "clear_workspaces", "idle", "is_as_expected", "new_memory", "provide"]
