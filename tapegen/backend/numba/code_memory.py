"""Code memory: of a program that is no longer used LLVM keeps its machine code, and nothing else.

Machine code stays until the process ends.  Its intermediate representation, which takes ten times the memory, is needed
only while functions that call it are linked.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

from llvmlite.binding import ffi, newpassmanagers
from numba.core.dispatcher import Dispatcher

from tapegen.backend.numba.patches import is_enabled


def free_pass_managers() -> None:
    """Let pass managers free their memory.

    Of their two base classes the first one, `ObjectRef`, has a `_dispose` that does nothing, and hides the one that
    frees them (seen in llvmlite 0.50): this leaks a megabyte for every compiled program.
    """
    if not is_enabled("code_memory"):
        return
    for manager in (newpassmanagers.ModulePassManager, newpassmanagers.FunctionPassManager):
        if manager._dispose is ffi.ObjectRef._dispose:
            manager._dispose = newpassmanagers.NewPassManager._dispose


def hand_over_modules(dispatcher: Dispatcher) -> None:
    """Leave the intermediate representation of compiled functions to numba, which releases it with the dispatcher."""
    if not is_enabled("code_memory"):
        return
    overloads: dict[Any, Any] = dispatcher.overloads
    for compiled in overloads.values():
        library = compiled.library
        engine = library.codegen._engine._ee
        if library._final_module in engine._modules:
            engine.remove_module(library._final_module)
