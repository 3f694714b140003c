"""The numba compiler pipeline of generated source: its passes and its lowering, with the patches that are enabled.

numba records the line of an explicit `raise` only; an index out of bounds is reported without any.  Here every error
that the code of a function itself raises carries its line, as it would in CPython.

numba tests every index of an array for being negative.  In loops whose counter it cannot prove to be non-negative
(`range(n - 1, -1, -1)`) that costs more than the access itself and prevents vectorization.  Unsigned
integers are not tested, so where all indices of a source count from the start, they are converted to unsigned.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, ClassVar, NamedTuple

from numba.core import cgutils, types
from numba.core.callconv import CPUCallConv, TryStatus
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUContext
from numba.core.typed_passes import NativeLowering, NopythonRewrites, PreLowerStripPhis
from numba.core.untyped_passes import InlineClosureLikes, IRProcessing, ReconstructSSA
from numba.np.arrayobj import _call_allocator, load_item, store_item

from tapegen.backend.numba import element_access
from tapegen.backend.numba.alias_scopes import Scopes, alias_groups
from tapegen.backend.numba.allocation import NewArrays
from tapegen.backend.numba.early_exits.exit_insertion import EarlyExits
from tapegen.backend.numba.element_access import is_accessible, pointer
from tapegen.backend.numba.list_operations import list_method, new_list
from tapegen.backend.numba.patches import is_enabled
from tapegen.backend.numba.range_loops import counted, counter, is_count, is_counter
from tapegen.backend.numba.register_promotion import RegisterPromotingLower
from tapegen.backend.numba.two_tier_optimization import TwoTierLowering
from tapegen.backend.numba.workspaces import new_memory


class CompilerOptions(NamedTuple):
    """The known properties of a source.

    Attributes
    ----------
    non_negative_indices : bool
        All indices of elements count from the start of their axis, and array expressions are loops already.
    single_type : bool
        All assignments of a variable have one type.  For other sources numba makes a variable for each assignment, and
        visits the whole function for each variable that is assigned twice.
    alias_scopes : bool
        Arguments share no memory where one of them is written.
    """

    non_negative_indices: bool = False
    single_type: bool = False
    alias_scopes: bool = False


class _LineCallConv(CPUCallConv):
    """The calling convention, with the current line for errors that have none, and without questions for `try`."""

    def __init__(self, context: Any, lower: RegisterPromotingLower) -> None:
        super().__init__(context)
        self._lower = lower

    def set_static_user_exc(
        self, builder: Any, exc: Any, exc_args: Any = None, loc: Any = None, func_name: str | None = None
    ) -> None:
        if loc is None and exc is not None and self._is_own(builder):
            loc, func_name = self._lower.loc, self._lower.func_ir.func_id.func_name
        super().set_static_user_exc(builder, exc, exc_args, loc, func_name)

    def check_try_status(self, builder: Any) -> Any:
        if self._may_catch(builder):
            return super().check_try_status(builder)
        return TryStatus(in_try=cgutils.false_bit, excinfo=None)

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        if self._may_catch(builder):
            super().return_status_propagate(builder, status)
            return
        builder.store(status.excinfoptr, self._get_excinfo_argument(builder.function))
        self._return_errcode_raw(builder, status.code)

    def _is_own(self, builder: Any) -> bool:
        """Whether the builder is in the function that is being lowered.

        Functions that numba compiles on the way share this object, and other callers share their code.
        """
        return bool(builder.function.name == self._lower.fndesc.mangled_name)

    def _may_catch(self, builder: Any) -> bool:
        """Whether a `try` may be around the current place; then its depth is counted in memory."""
        code = self._lower.func_ir.func_id.code
        return not (is_enabled("direct_exits") and self._is_own(builder) and not code.co_exceptiontable)


class _Context(CPUContext):
    """The context of one function being lowered."""

    lower: _Lower

    @property
    def call_conv(self) -> CPUCallConv:
        return _LineCallConv(self, self.lower) if is_enabled("error_lines") else super().call_conv

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        sig = sig.as_function()
        method = list_method(self, fn, sig) if is_enabled("list_operations") else None
        if method is None:
            return super().get_function(fn, sig, _firstcall)
        return lambda builder, args, loc=None: method(self, builder, sig, args)

    def compile_internal(self, builder: Any, impl: Any, sig: Any, args: Any, *given: Any, **named: Any) -> Any:
        if impl is _call_allocator and is_enabled("allocation"):
            _, size, align = args  # without a function around the call
            if is_enabled("workspaces"):
                made = new_memory(builder, size, align)
                cgutils.guard_memory_error(self, builder, made, msg="Allocation failed (probably too large).")
                return made
            return self.nrt.meminfo_alloc_aligned(builder, size, align)
        return super().compile_internal(builder, impl, sig, args, *given, **named)

    def build_list(self, builder: Any, list_type: Any, items: Any) -> Any:
        if not is_enabled("list_operations"):
            return super().build_list(builder, list_type, items)
        return new_list(self, builder, list_type, items)

    def pair_first(self, builder: Any, val: Any, ty: Any) -> Any:
        if not is_enabled("pairs_in_registers"):
            return super().pair_first(builder, val, ty)
        return builder.extract_value(val, 0)

    def pair_second(self, builder: Any, val: Any, ty: Any) -> Any:
        if not is_enabled("pairs_in_registers"):
            return super().pair_second(builder, val, ty)
        return builder.extract_value(val, 1)

    def unpack_value(self, builder: Any, ty: Any, ptr: Any, align: Any = None) -> Any:
        value = super().unpack_value(builder, ty, ptr, align)
        self.lower.accessed(value)
        return value

    def pack_value(self, builder: Any, ty: Any, value: Any, ptr: Any, align: Any = None) -> None:
        super().pack_value(builder, ty, value, ptr, align)
        self.lower.accessed(builder.block.instructions[-1])


class _Lower(RegisterPromotingLower):
    """The lowering of one function."""

    options: ClassVar[CompilerOptions] = CompilerOptions()
    element_of: str | None = None  # the array whose element is being read or written

    def init(self) -> None:
        super().init()
        self.context.__class__ = _Context  # a copy of the target's context, made for this function
        self.context.lower = self
        self.scopes: Scopes | None = None
        if self.options.alias_scopes and is_enabled("alias_scopes"):
            groups = alias_groups(self.func_ir, self.fndesc.typemap)
            self.scopes = Scopes(self.module, self.fndesc.mangled_name, groups)
        self.unsigned = self.options.non_negative_indices and is_enabled("non_negative_indices")

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        if expr.op in ("getiter", "iternext") and is_enabled("range_loops"):
            begins, type_ = expr.op == "getiter", self.typeof(expr.value.name)
            if begins and type_ == types.range_state64_type and is_count(self.func_ir, expr.value):
                return counter(self.context, self.builder, self.loadvar(expr.value.name))
            if not begins and type_ == types.range_iter64_type and is_counter(self.func_ir, expr.value):
                return counted(self.context, self.builder, self.loadvar(expr.value.name))
        elif expr.op == "getattr" and expr.attr == "shape" and is_enabled("element_access"):
            type_ = self.typeof(expr.value.name)
            if type(type_) is types.Array and not isinstance(resty, types.BoundFunction):
                found = element_access.shape(self.context, self.builder, type_, self.loadvar(expr.value.name))
                return self.context.cast(self.builder, found, types.UniTuple(types.intp, type_.ndim), resty)
        return super().lower_expr(resty, expr)

    def accessed(self, instruction: Any) -> None:
        """Notes an instruction that may read or write an element of an array."""
        if self.scopes is not None and self.element_of is not None:
            self.scopes.mark(instruction, self.element_of)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        with self._element(value, signature):
            signature = _from_start(signature) if self.unsigned else signature
            if not self._is_direct(signature):
                return super().lower_getitem(resty, expr, value, index, signature)
            place = self._place(value, index, signature)
            item = load_item(self.context, self.builder, signature.args[0], place)
            return self.context.cast(self.builder, item, signature.return_type, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        with self._element(target_var, signature):
            signature = _from_start(signature) if self.unsigned else signature
            if not self._is_direct(signature):
                return super().lower_setitem(target_var, index_var, value_var, signature)
            array, _, type_ = signature.args
            given = self.loadvar(value_var.name)
            place = self._place(target_var, index_var, signature)
            item = self.context.cast(self.builder, given, self.typeof(value_var.name), type_)
            item = self.context.cast(self.builder, item, type_, array.dtype)
            return store_item(self.context, self.builder, array, item, place)

    def _is_direct(self, signature: Any) -> bool:
        array, index, *_ = signature.args
        return self.unsigned and is_enabled("element_access") and is_accessible(self.context, array, index)

    def _place(self, array: Any, index: Any, signature: Any) -> Any:
        """The address of an element."""
        array_type, index_type, *_ = signature.args
        value = self.context.cast(self.builder, self.loadvar(array.name), self.typeof(array.name), array_type)
        items = self.context.cast(self.builder, self.loadvar(index.name), self.typeof(index.name), index_type)
        return pointer(self.context, self.builder, array_type, value, index_type, items)

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
    """The signature of an access to one element of an array, with unsigned indices; others unchanged."""
    array, index, *value = signature.args
    single = isinstance(index, types.Integer)
    items: list[Any] = [index] if single else list(index) if isinstance(index, types.UniTuple | types.Tuple) else [None]
    if not isinstance(array, types.Array) or not all(isinstance(item, types.Integer) for item in items):
        return signature
    unsigned = types.uintp if single else types.UniTuple(types.uintp, len(items))
    return signature.replace(args=(array, unsigned, *value))


@functools.cache
def _lowering(options: CompilerOptions) -> type[NativeLowering]:
    """The lowering pass for sources with these properties."""
    lower = type("_Lower", (_Lower,), {"options": options})
    words = [name for name, holds in options._asdict().items() if holds]

    class Lowering(TwoTierLowering):
        _name = "_".join(["lowering", *words])

        @property
        def lowering_class(self) -> type[RegisterPromotingLower]:
            return lower

    made: type[NativeLowering] = register_pass(mutates_CFG=True, analysis_only=False)(Lowering)
    return made


class GeneratedCodeCompiler(CompilerBase):
    """numba's nopython compiler for generated text."""

    options: ClassVar[CompilerOptions] = CompilerOptions()

    def define_pipelines(self) -> list[Any]:
        """The passes of nopython mode, without those that have nothing to do, with lowering replaced."""
        idle = self._skipped_passes() if is_enabled("fewer_passes") else frozenset()
        lowering = _lowering(self.options)
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [
            (lowering if pass_ is NativeLowering else pass_, what)
            for pass_, what in pipeline.passes
            if pass_ not in idle
        ]
        if is_enabled("interrupts") or is_enabled("allocation"):
            pipeline.add_pass_after(EarlyExits, IRProcessing)
        if is_enabled("allocation"):
            pipeline.add_pass_after(NewArrays, IRProcessing)
        pipeline.finalize()
        return [pipeline]

    def _skipped_passes(self) -> frozenset[type]:
        """Passes with nothing to do for this source: closures, array expressions, variables of several types."""
        idle: set[type] = set()
        if not any(isinstance(value, CodeType) for value in self.state.func_id.code.co_consts):
            idle.add(InlineClosureLikes)
        if self.options.non_negative_indices:
            idle.add(NopythonRewrites)
        if self.options.single_type:
            idle |= {ReconstructSSA, PreLowerStripPhis}
        return frozenset(idle)


@functools.cache
def compiler_with(options: CompilerOptions) -> type[GeneratedCodeCompiler]:
    """The compiler for sources with these properties."""
    return type("GeneratedCodeCompiler", (GeneratedCodeCompiler,), {"options": options})


def compilers_for(*, from_start: bool, overlapping: bool) -> tuple[type[GeneratedCodeCompiler], ...]:
    """The compilers for a source, each a fallback for the previous one.

    Parameters
    ----------
    from_start : bool
        Whether all its indices count from the start of their axis (see `build.build_numba`).
    overlapping : bool
        Whether its arguments may share memory where one of them is written.
    """
    if not from_start:
        return (GeneratedCodeCompiler,)
    return tuple(compiler_with(CompilerOptions(True, single, not overlapping)) for single in (True, False))
