"""Callees: functions that only compiled code calls, numba's implementations and the helpers of generated text.

numba optimizes each of them in full, makes machine code of it, and a function of C that calls it.  Nobody uses these:
the code that calls it contains a copy, which is optimized with the rest.
"""

# mypy: disable-error-code="no-untyped-call, method-assign, attr-defined"

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.cpu import CPUContext
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering

_ENVIRONMENT = "_ZN08NumbaEnv"
"""How numba begins the names of the variables that hold the constants of a function."""


class CalleeLibrary(JITCodeLibrary):
    """A library that others link, and that is no machine code itself."""

    def _optimize_final_module(self) -> None:
        """Leave that to the function that it becomes part of."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is no code to point to."""
        return 0


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
            name = fndesc.qualname.rpartition(".")[2]
            return _dynfunc.make_function(fndesc.lookup_module(), name, "no entry point", 0, env, (library,))
        made = get_executable(self, library, fndesc, env)
        engine = library.codegen._engine
        for variable in library._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT) and engine.is_symbol_defined(variable.name):
                constants = lookup_environment(variable.name)
                if constants is not None:
                    library.codegen.set_env(variable.name, constants)
        return made

    NativeLowering.run_pass = lowered
    CPUContext.get_executable = executable
    try:
        yield
    finally:
        NativeLowering.run_pass = run_pass
        CPUContext.get_executable = get_executable
