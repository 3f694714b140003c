"""A numba compiler whose errors name the line they come from.

numba records the line of an explicit `raise` only; an index out of bounds is reported without any.  Here every error
that the code of a function itself raises carries its line, as it would in CPython.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

from numba.core.callconv import CPUCallConv
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUContext
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering


class _LocatedErrors(CPUCallConv):
    """The calling convention, with the current line wherever an error has none."""

    def __init__(self, context: Any, lower: Lower) -> None:
        super().__init__(context)
        self._lower = lower

    def set_static_user_exc(
        self, builder: Any, exc: Any, exc_args: Any = None, loc: Any = None, func_name: str | None = None
    ) -> None:
        # functions that numba compiles on the way share this object, and other callers share their code
        own = builder.function.name == self._lower.fndesc.mangled_name
        if loc is None and exc is not None and own:
            loc, func_name = self._lower.loc, self._lower.func_ir.func_id.func_name
        super().set_static_user_exc(builder, exc, exc_args, loc, func_name)


class _LocatedContext(CPUContext):
    """The context of one function being lowered."""

    lower: Lower

    @property
    def call_conv(self) -> CPUCallConv:
        return _LocatedErrors(self, self.lower)


class _LocatedLower(Lower):
    def init(self) -> None:
        super().init()
        self.context.__class__ = _LocatedContext  # a copy of the target's context, made for this function
        self.context.lower = self


@register_pass(mutates_CFG=True, analysis_only=False)
class _LocatedLowering(NativeLowering):
    _name = "located_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _LocatedLower


class LocatedCompiler(CompilerBase):
    """numba's nopython compiler with located errors."""

    def define_pipelines(self) -> list[Any]:
        """The passes of nopython mode, with the last but one replaced."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        position = [pass_ for pass_, _ in pipeline.passes].index(NativeLowering)
        pipeline.passes[position] = (_LocatedLowering, pipeline.passes[position][1])
        pipeline.finalize()
        return [pipeline]
