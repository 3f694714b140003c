"""Two-tier optimization: reduced optimization of long functions.

numba optimizes a function in full before it links the functions that it calls, and then in full once more.  The first
time serves small functions, which are inlined into others; for a long one it was a third of the compile time.  There
only slots are promoted, the results simplified, and redundant reference counting removed.

What is linked is optimized at level 2 instead of 3, which unrolls loops further and takes up to 1.4 times as long; in
none of the benchmark kernels is its code faster.

Before every `raise` numba releases all live arrays: errors times arrays.  In long functions errors exit
by one chain of blocks that release an array each, the longest living last, and enter it where their own arrays begin.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from typing import Any

from llvmlite.binding.newpassmanagers import create_new_function_pass_manager
from numba.core import config, ir
from numba.core.callconv import RETCODE_EXC, RETCODE_USEREXC
from numba.core.codegen import JITCodeLibrary
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering

from tapegen.backend.numba.patches import is_enabled

_LONG = 3000
"""Statements in numba's IR, about five for a line of source."""


def _is_long(func_ir: Any) -> bool:
    return sum(len(block.body) for block in func_ir.blocks.values()) > _LONG


_LEVEL = 2
"""LLVM's level of optimization of linked code, unless NUMBA_OPT asks for less."""


class _Library(JITCodeLibrary):
    """Generated code."""

    def _optimize_final_module(self) -> None:
        if not config.LLVM_REFPRUNE_PASS:  # type: ignore[attr-defined]  # it is set from the environment
            super()._optimize_final_module()
            return
        codegen = self._codegen
        inlining = codegen._module_pass_manager(
            loop_vectorize=codegen._loopvect, slp_vectorize=False, opt=codegen._opt_level, cost="cheap"
        )
        level = min(_LEVEL, config.OPT)  # type: ignore[attr-defined]
        for passes, builder in (inlining, codegen._module_pass_manager(opt=level)):
            passes.run(self._final_module, builder)


class _TwoTierLibrary(_Library):
    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            passes = create_new_function_pass_manager()
            passes.add_sroa_pass()
            passes.add_instruction_combine_pass()
            passes.add_simplify_cfg_pass()
            passes.add_refprune_pass()
            passes.run(function, self._codegen._pass_builder())


class TwoTierLowering(NativeLowering):
    """numba's lowering, with libraries of its own."""

    _name: str = "two_tier_lowering"

    def run_pass(self, state: Any) -> bool:
        """Whether anything has changed."""
        if is_enabled("two_tier_optimization") and state.library is None:
            library = _TwoTierLibrary if _is_long(state.func_ir) else _Library
            state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
        return bool(super().run_pass(state))


class TwoTierLower(Lower):
    """numba's lowering of one function, with an exit that the errors of a long one share."""

    def init(self) -> None:
        super().init()
        self._ways_out: dict[tuple[str, ...], Any] = {}
        self._way_out: tuple[str, ...] | None = None
        self._raised: Counter[str] | None = None
        self._referring: dict[Any, bool] = {}
        if is_enabled("shared_error_exits") and _is_long(self.func_ir):
            blocks = self.func_ir.blocks.values()
            self._raised = Counter(name for block in blocks for name in self._let_go_first(block))

    def refers(self, name: str) -> bool:
        """Whether the value of a variable must be released; cached by type, of which there are few."""
        type_ = self.fndesc.typemap[name]
        if type_ not in self._referring:
            self._referring[type_] = bool(self.context.data_model_manager[type_].contains_nrt_meminfo())
        return self._referring[type_]

    def _let_go_first(self, block: Any) -> list[str]:
        """The variables that a block releases before all else, if it raises an error."""
        if not isinstance(block.terminator, ir.StaticRaise) or block.terminator.exc_class is KeyboardInterrupt:
            return []  # the shared exit raises an error of its own
        first = takewhile(lambda stmt: isinstance(stmt, ir.Del), block.body)
        return [stmt.value for stmt in first if self.refers(stmt.value)]

    def lower_block(self, block: Any) -> None:
        """Emit a block; one that raises an error releases nothing itself."""
        counts = self._raised
        if counts is None or not (names := self._let_go_first(block)):
            super().lower_block(block)
            return
        self._way_out = tuple(sorted(names, key=lambda name: (counts[name], name)))
        rest = block.copy()
        rest.body = [stmt for stmt in block.body if not (isinstance(stmt, ir.Del) and stmt.value in names)]
        super().lower_block(rest)
        self._way_out = None

    def return_exception(self, exc_class: Any, exc_args: Any = None, loc: Any = None) -> None:
        """Exit the function with an error; after an interrupt, with what the handler of signals raised."""
        if exc_class is KeyboardInterrupt:
            self.call_conv._return_errcode_raw(self.builder, RETCODE_EXC)
            return
        if self._way_out is None:
            super().return_exception(exc_class, exc_args, loc)
            return
        name = self.func_ir.func_id.func_name
        self.call_conv.set_static_user_exc(self.builder, exc_class, exc_args, loc, name)
        self.builder.branch(self._leaving(self._way_out))

    def _leaving(self, names: tuple[str, ...]) -> Any:
        """The block that releases variables, one after the other, and returns."""
        for k in range(len(names), -1, -1):
            if names[k:] not in self._ways_out:
                made = self._ways_out[names[k:]] = self.function.append_basic_block("raised")
                with self.builder.goto_block(made):
                    if k == len(names):
                        self.call_conv._return_errcode_raw(self.builder, RETCODE_USEREXC)
                    else:
                        self.delvar(names[k])
                        self.builder.branch(self._ways_out[names[k + 1 :]])
        return self._ways_out[names]
