"""Callees: functions that only compiled code calls, numba's implementations and the helpers of generated text.

numba optimizes each of them in full, makes machine code of it, and a function of C that calls it.  Nobody uses these:
the code that calls it contains a copy, which is optimized with the rest.  Compiled as by numba is a function that reads
objects of Python, as some errors do, since its code tells where they are, and one that calls itself with other types by
way of another function, since numba finds the address of such a function by its name.
"""

# mypy: disable-error-code="no-untyped-call, method-assign, attr-defined"

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary, RuntimeLinker
from numba.core.cpu import CPUContext
from numba.core.typed_passes import NativeLowering

_UNRESOLVED = RuntimeLinker.PREFIX


class CalleeLibrary(JITCodeLibrary):
    """A library that others link; while `is_part`, it is no machine code itself."""

    is_part = True

    @property
    def waits_for_another(self) -> bool:
        """Whether it, or what it contains, calls a function by an address that is not known yet."""
        own = any(each.name.startswith(_UNRESOLVED) for each in self._final_module.global_variables)
        return own or any(
            isinstance(linked, CalleeLibrary) and linked.waits_for_another for linked in self._linking_libraries
        )

    def _optimize_final_module(self) -> None:
        if not self.is_part:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if not self.is_part:
            super()._finalize_final_module()
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """The address of a function; 0 where there is no machine code."""
        return 0 if self.is_part else int(super().get_pointer_to_function(name))


@contextmanager
def callees_are_parts() -> Iterator[None]:
    """A context in which numba compiles callees as parts of their callers; for the thread that holds its lock."""
    run_pass, get_executable = NativeLowering.run_pass, CPUContext.get_executable

    def lowered(self: Any, state: Any) -> bool:
        if state.library is None and state.flags.no_cpython_wrapper and not state.flags.no_compile:
            state.library = CalleeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_cfunc_wrapper = True
        return bool(run_pass(self, state))

    def executable(self: Any, library: Any, fndesc: Any, env: Any) -> Any:
        if isinstance(library, CalleeLibrary):
            library.is_part = not env.consts and not library.waits_for_another
            if library.is_part:
                name = fndesc.qualname.rpartition(".")[2]
                return _dynfunc.make_function(fndesc.lookup_module(), name, "no entry point", 0, env, (library,))
        return get_executable(self, library, fndesc, env)

    NativeLowering.run_pass = lowered
    CPUContext.get_executable = executable
    try:
        yield
    finally:
        NativeLowering.run_pass = run_pass
        CPUContext.get_executable = get_executable
