"""A numba compiler whose errors name their line, and that is told where no index is negative and what is apart.

numba records the line of an explicit `raise` only; an index out of bounds is reported without any.  Here every error
that the code of a function itself raises carries its line, as it would in CPython.

numba looks at every index of an array for being negative.  In loops whose counter it cannot prove to be non-negative
(`range(n - 1, -1, -1)`) that costs more than the access itself and keeps the loop from vector instructions.  Unsigned
integers are not looked at, so where a text says that all its indices count from the start, they are taken as such.

Passes that look for what generated text never holds, closures, array expressions and names of several types, are left
out.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from numba.core import types
from numba.core.callconv import CPUCallConv
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUContext
from numba.core.typed_passes import NativeLowering, NopythonRewrites, PreLowerStripPhis
from numba.core.untyped_passes import InlineClosureLikes, IRProcessing, ReconstructSSA

from tapegen.backend.numba.alias_scopes import Scopes, groups_of
from tapegen.backend.numba.allocation import NewArrays
from tapegen.backend.numba.list_operations import list_method, new_list
from tapegen.backend.numba.range_loops import counted, counter, is_count, is_counter
from tapegen.backend.numba.register_promotion import HeldLower
from tapegen.backend.numba.two_tier_optimization import LongLowering


class _LocatedErrors(CPUCallConv):
    """The calling convention, with the current line wherever an error has none."""

    def __init__(self, context: Any, lower: HeldLower) -> None:
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

    lower: _LocatedLower

    @property
    def call_conv(self) -> CPUCallConv:
        return _LocatedErrors(self, self.lower)

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        sig = sig.as_function()
        method = list_method(self, fn, sig)
        if method is None:
            return super().get_function(fn, sig, _firstcall)
        return lambda builder, args, loc=None: method(self, builder, sig, args)

    def build_list(self, builder: Any, list_type: Any, items: Any) -> Any:
        return new_list(self, builder, list_type, items)

    def pair_first(self, builder: Any, val: Any, ty: Any) -> Any:
        return builder.extract_value(val, 0)

    def pair_second(self, builder: Any, val: Any, ty: Any) -> Any:
        return builder.extract_value(val, 1)

    def unpack_value(self, builder: Any, ty: Any, ptr: Any, align: Any = None) -> Any:
        value = super().unpack_value(builder, ty, ptr, align)
        self.lower.accessed(value)
        return value

    def pack_value(self, builder: Any, ty: Any, value: Any, ptr: Any, align: Any = None) -> None:
        super().pack_value(builder, ty, value, ptr, align)
        self.lower.accessed(builder.block.instructions[-1])


class _LocatedLower(HeldLower):
    def init(self) -> None:
        super().init()
        self.context.__class__ = _LocatedContext  # a copy of the target's context, made for this function
        self.context.lower = self

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        if expr.op in ("getiter", "iternext"):
            begins, type_ = expr.op == "getiter", self.typeof(expr.value.name)
            if begins and type_ == types.range_state64_type and is_count(self.func_ir, expr.value):
                return counter(self.context, self.builder, self.loadvar(expr.value.name))
            if not begins and type_ == types.range_iter64_type and is_counter(self.func_ir, expr.value):
                return counted(self.context, self.builder, self.loadvar(expr.value.name))
        return super().lower_expr(resty, expr)

    def accessed(self, instruction: Any) -> None:
        """Takes note of an instruction that may read or write an element of an array."""


class _LowerFromStart(_LocatedLower):
    """Indices of elements as unsigned integers."""

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        return super().lower_getitem(resty, expr, value, index, _from_start(signature))

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        return super().lower_setitem(target_var, index_var, value_var, _from_start(signature))


class _LowerApart(_LowerFromStart):
    """The same, and each access to an element says with which arrays it has nothing to do."""

    element_of: str | None = None  # the array whose element is being read or written

    def init(self) -> None:
        super().init()
        groups = groups_of(self.func_ir, self.fndesc.typemap)
        self.scopes = Scopes(self.module, self.fndesc.mangled_name, groups)

    def accessed(self, instruction: Any) -> None:
        if self.element_of is not None:
            self.scopes.mark(instruction, self.element_of)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        with self._element(value, signature):
            return super().lower_getitem(resty, expr, value, index, signature)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        with self._element(target_var, signature):
            return super().lower_setitem(target_var, index_var, value_var, signature)

    @contextmanager
    def _element(self, array: Any, signature: Any) -> Iterator[None]:
        self.element_of = array.name if _is_element(signature) else None
        try:
            yield
        finally:
            self.element_of = None


def _is_element(signature: Any) -> bool:
    """Whether an access is to one element of an array."""
    array, index, *_ = signature.args
    items: Any = index if isinstance(index, types.BaseTuple) else [index]
    return isinstance(array, types.Array) and len(items) == array.ndim and all(_is_integer(item) for item in items)


def _is_integer(type_: Any) -> bool:
    return isinstance(type_, types.Integer)


def _from_start(signature: Any) -> Any:
    """The signature of an access to one element of an array, with unsigned indices; others as they are."""
    array, index, *value = signature.args
    single = isinstance(index, types.Integer)
    items: list[Any] = [index] if single else list(index) if isinstance(index, types.UniTuple | types.Tuple) else [None]
    if not isinstance(array, types.Array) or not all(isinstance(item, types.Integer) for item in items):
        return signature
    unsigned = types.uintp if single else types.UniTuple(types.uintp, len(items))
    return signature.replace(args=(array, unsigned, *value))


@register_pass(mutates_CFG=True, analysis_only=False)
class _LocatedLowering(LongLowering):
    _name = "located_lowering"

    @property
    def lowering_class(self) -> type[HeldLower]:
        return _LocatedLower


@register_pass(mutates_CFG=True, analysis_only=False)
class _LoweringFromStart(LongLowering):
    _name = "located_lowering_from_start"

    @property
    def lowering_class(self) -> type[HeldLower]:
        return _LowerFromStart


@register_pass(mutates_CFG=True, analysis_only=False)
class _LoweringApart(_LoweringFromStart):
    _name = "located_lowering_apart"

    @property
    def lowering_class(self) -> type[HeldLower]:
        return _LowerApart


class LocatedCompiler(CompilerBase):
    """numba's nopython compiler with located errors."""

    lowering: type[NativeLowering] = _LocatedLowering

    idle: frozenset[type] = frozenset()
    """Passes that find nothing to do."""

    def define_pipelines(self) -> list[Any]:
        """The passes of nopython mode, but for the idle ones, with lowering replaced."""
        idle = self.idle
        if not any(isinstance(value, CodeType) for value in self.state.func_id.code.co_consts):
            idle |= {InlineClosureLikes}
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [
            (self.lowering if pass_ is NativeLowering else pass_, what)
            for pass_, what in pipeline.passes
            if pass_ not in idle
        ]
        pipeline.add_pass_after(NewArrays, IRProcessing)
        pipeline.finalize()
        return [pipeline]


class FromStartCompiler(LocatedCompiler):
    """The same for functions none of whose indices is negative, and whose array expressions are loops already."""

    lowering = _LoweringFromStart
    idle = frozenset({NopythonRewrites})


class OneTypeCompiler(FromStartCompiler):
    """The same for functions in which all that a name is given has one type, as in generated text.

    A name for each assignment is what numba makes of others, and walks over the whole function for each name that is
    assigned twice.
    """

    idle = FromStartCompiler.idle | {ReconstructSSA, PreLowerStripPhis}


class ApartCompiler(FromStartCompiler):
    """One that is told which arrays are apart: for functions whose arguments share no memory where one is written."""

    lowering = _LoweringApart


class OneTypeApartCompiler(ApartCompiler):
    """Both."""

    idle = OneTypeCompiler.idle


def compilers_for(*, from_start: bool, overlapping: bool) -> tuple[type[LocatedCompiler], ...]:
    """The compilers for a text, the next one for what one of them does not take.

    Parameters
    ----------
    from_start : bool
        Whether all its indices count from the start of their axis (see `build.build_numba`).
    overlapping : bool
        Whether its arguments may share memory where one of them is written.
    """
    if not from_start:
        return (LocatedCompiler,)
    return (OneTypeCompiler, FromStartCompiler) if overlapping else (OneTypeApartCompiler, ApartCompiler)
