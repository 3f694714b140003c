"""Fewer passes of the optimiser for long functions.

numba optimises a function in full before it takes in those that it calls, and then in full once more.  The first time
is for small functions, which become part of others; for a long one it was a third of the time of compilation.  There
only slots become values, what follows from that is simplified, and references that need not be counted are not.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

from llvmlite.binding.newpassmanagers import create_new_function_pass_manager
from numba.core.codegen import JITCodeLibrary
from numba.core.typed_passes import NativeLowering

_LONG = 3000
"""Statements in numba's form, about five for a line of text."""


class _LongLibrary(JITCodeLibrary):
    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            passes = create_new_function_pass_manager()
            passes.add_sroa_pass()
            passes.add_instruction_combine_pass()
            passes.add_simplify_cfg_pass()
            passes.add_refprune_pass()
            passes.run(function, self._codegen._pass_builder())


class LongLowering(NativeLowering):
    """numba's lowering, with a library of its own for long functions."""

    _name: str = "long_lowering"

    def run_pass(self, state: Any) -> bool:
        """Whether anything has changed."""
        if state.library is None and sum(len(block.body) for block in state.func_ir.blocks.values()) > _LONG:
            state.library = _LongLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
        return bool(super().run_pass(state))
