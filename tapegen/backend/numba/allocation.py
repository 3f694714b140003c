"""Array allocation in compiled code, inlined for each `np.empty` and `np.zeros`.

numba compiles a separate function for every combination of argument types of these two, and three more for zeros.
Generated source allocates many arrays of many types, and that took a tenth of the compile time.  The functions that
grow tapes are emitted too.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import re
from typing import Any

import numpy as np
from llvmlite.ir import Constant, Function, FunctionType, IntType, IRBuilder, Value
from numba.core import cgutils, ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.extending import intrinsic
from numba.core.ir_utils import build_definitions, get_definition, guard
from numba.core.typing.npydecl import parse_dtype, parse_shape
from numba.core.typing.templates import Signature
from numba.np.arrayobj import get_itemsize, make_array, populate_array

from tapegen.backend.numba import memory_limit
from tapegen.backend.numba.library import matrix_products
from tapegen.backend.numba.patches import is_enabled
from tapegen.backend.numba.workspaces import new_memory


def _typed(shape: Any, dtype: Any, given: tuple[Any, ...], make: Any) -> Any:
    """The types of a call, and its inlined code; None if there is none, as for NumPy's own function."""
    item, rank = types.float64 if dtype is None else parse_dtype(dtype), parse_shape(shape)
    return None if item is None or rank is None else (types.Array(item, rank, "C")(*given), make)


def _made(context: Any, builder: IRBuilder, sig: Signature, args: Any) -> Any:
    shape: Any = sig.args[0]
    several = isinstance(shape, types.BaseTuple)
    if several:
        given = list(zip(cgutils.unpack_tuple(builder, args[0], shape.count), shape, strict=True))
    else:
        given = [(args[0], shape)]
    sizes = [context.cast(builder, value, type_, types.intp) for value, type_ in given]
    return _new(context, builder, sig.return_type, sizes)


def _new(context: Any, builder: IRBuilder, kind: Any, shapes: Any, *, is_checked: bool = True) -> Any:
    """A new array in C order."""
    item = get_itemsize(context, kind)
    memory = builder.call(_allocator(context, builder.module, len(shapes), item, is_checked=is_checked), shapes)
    code = builder.ptrtoint(memory, cgutils.intp_t)
    with cgutils.if_unlikely(builder, builder.icmp_unsigned("<=", code, code.type(_LAST_CODE))):
        for number, (error, message) in _REFUSALS.items():
            with builder.if_then(builder.icmp_unsigned("==", code, code.type(number))):
                context.call_conv.return_user_exc(builder, error, (message,))
        context.call_conv.return_user_exc(builder, MemoryError, ("Allocation failed (probably too large).",))
    strides = [code.type(item)]
    for size in reversed(shapes[1:]):
        strides.insert(0, builder.mul(strides[0], size))
    data = builder.bitcast(context.nrt.meminfo_data(builder, memory), context.get_data_type(kind.dtype).as_pointer())
    array = make_array(kind)(context, builder)
    return populate_array(array, data, shapes, strides[len(strides) - len(shapes) :], code.type(item), memory)


_NEGATIVE, _TOO_BIG, _NO_ROOM = 1, 2, 3
_LAST_CODE = 3
"""What takes the place of the address of memory, as does 0 where there is none."""

_REFUSALS: dict[int, tuple[type[Exception], str]] = {
    _NEGATIVE: (ValueError, "negative dimensions not allowed"),
    _TOO_BIG: (
        ValueError,
        "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size.",
    ),
    _NO_ROOM: (MemoryError, memory_limit.TOO_MUCH),
}


def _allocator(context: Any, module: Any, rank: int, item: int, *, is_checked: bool) -> Function:
    """The function of a module that allocates memory for the axes of an array; written at its first call.

    Whether there is memory for a tape is tested before (`early_exits`).
    """
    name = f"new {'array' if is_checked else 'tape'} of {rank} axes, {item} bytes"
    if (known := module.globals.get(name)) is not None:
        return known
    number = cgutils.intp_t
    made = Function(module, FunctionType(cgutils.voidptr_t, [number] * rank), name)
    made.linkage = "internal"
    made.attributes.add("noinline")
    builder = IRBuilder(made.append_basic_block())

    def refuse(condition: Value, code: int) -> None:
        with cgutils.if_unlikely(builder, condition):
            builder.ret(number(code).inttoptr(cgutils.voidptr_t))

    size, too_big = number(1), Constant(IntType(1), 0)
    for axis in made.args:
        refuse(builder.icmp_signed("<", axis, number(0)), _NEGATIVE)
    for factor in (*made.args, number(item)):  # the order of numba
        product = builder.smul_with_overflow(size, factor)
        size = builder.extract_value(product, 0)
        too_big = builder.or_(too_big, builder.extract_value(product, 1))
    refuse(too_big, _TOO_BIG)
    if is_checked:
        with builder.if_then(builder.icmp_unsigned(">=", size, number(memory_limit.LARGE))):
            refuse(builder.not_(memory_limit.has_room(builder, size, is_tape=False)), _NO_ROOM)
    align = IntType(32)(context.get_preferred_array_alignment(None))
    new = new_memory if is_enabled("workspaces") else context.nrt.meminfo_alloc_aligned_unchecked
    builder.ret(new(builder, size, align))
    return made


def _empty(context: Any, builder: IRBuilder, sig: Signature, args: Any) -> Value:
    return _made(context, builder, sig, args)._getvalue()


def _zeros(context: Any, builder: IRBuilder, sig: Signature, args: Any) -> Value:
    array = _made(context, builder, sig, args)
    cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)
    return array._getvalue()


def _longer(context: Any, builder: IRBuilder, sig: Signature, args: Any) -> Value:
    """A tape with twice the capacity, and the items of the full one."""
    (type_,) = sig.args
    full = make_array(type_)(context, builder, args[0])
    first, *rest = cgutils.unpack_tuple(builder, full.shape)
    longer = _new(context, builder, type_, [builder.mul(first, first.type(2)), *rest], is_checked=False)
    cgutils.raw_memcpy(builder, longer.data, full.data, full.nitems, longer.itemsize)
    return longer._getvalue()


def _begun(context: Any, builder: IRBuilder, sig: Signature, args: Any) -> Value:
    memory_limit.begin_tapes(builder)
    return context.get_dummy_value()


@intrinsic
def longer_tape(typing: Any, tape: Any) -> Any:
    return (tape(tape), _longer) if isinstance(tape, types.Array) and tape.layout == "C" else None


@intrinsic
def _begin_tapes(typing: Any) -> Any:
    return types.none(), _begun


@intrinsic
def _empty_floats(typing: Any, shape: Any) -> Any:
    return _typed(shape, None, (shape,), _empty)


@intrinsic
def _empty_of(typing: Any, shape: Any, dtype: Any) -> Any:
    return _typed(shape, dtype, (shape, dtype), _empty)


@intrinsic
def _zero_floats(typing: Any, shape: Any) -> Any:
    return _typed(shape, None, (shape,), _zeros)


@intrinsic
def _zeros_of(typing: Any, shape: Any, dtype: Any) -> Any:
    return _typed(shape, dtype, (shape, dtype), _zeros)


_WRITTEN: dict[tuple[str, int], Any] = {
    ("empty", 1): _empty_floats,
    ("empty", 2): _empty_of,
    ("zeros", 1): _zero_floats,
    ("zeros", 2): _zeros_of,
    ("dot", 2): matrix_products.product,
    ("linalg.solve", 2): matrix_products.solve,
}
"""By the NumPy name and the number of arguments."""


def _name_in_numpy(func_ir: Any, var: Any) -> str:
    """The NumPy name of the function that a variable holds."""
    definition = guard(get_definition, func_ir, var)
    if isinstance(definition, ir.Expr) and definition.op == "getattr":
        owner = guard(get_definition, func_ir, definition.value)
        if isinstance(owner, ir.Global) and owner.value is np:
            return definition.attr
        return f"{_name_in_numpy(func_ir, definition.value)}.{definition.attr}"
    return ""


_GROWS = re.compile(r"grown(_\d+d)?(_\d+)?")
"""The functions of a source that grow tapes, see `printer.helper_functions`: emitted without numba's compiler."""


def _calls_growth(func_ir: Any, var: Any) -> bool:
    """Whether a variable holds one of them."""
    definition = guard(get_definition, func_ir, var)
    return isinstance(definition, ir.Global) and _GROWS.fullmatch(definition.name) is not None


@register_pass(mutates_CFG=False, analysis_only=False)
class NewArrays(FunctionPass):
    """Replaces calls of `np.empty`, `np.zeros` and a few others by calls of functions of our own."""

    _name = "new_arrays"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Whether there are any."""
        found = has_tapes = False
        for block in state.func_ir.blocks.values():
            has_tapes |= any(True for _ in block.find_exprs(op="build_list"))  # it may be one of arrays
            for call in list(block.find_exprs(op="call")):
                if call.kws or call.vararg is not None:
                    continue
                written = _WRITTEN.get((_name_in_numpy(state.func_ir, call.func), len(call.args)))
                if _calls_growth(state.func_ir, call.func):
                    written, has_tapes = longer_tape, True
                found |= self._replaced(block, call, written)
        if has_tapes:
            self._begin(state.func_ir)
        if found or has_tapes:
            state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return found or has_tapes

    def _begin(self, func_ir: Any) -> None:
        """Report at the start of a function that its tapes are new."""
        block = func_ir.blocks[min(func_ir.blocks)]
        scope, loc = block.scope, block.loc
        function, done = (scope.redefine("$begin_tapes", loc) for _ in range(2))
        block.body[:0] = [
            ir.Assign(ir.Global("begin_tapes", _begin_tapes, loc), function, loc),
            ir.Assign(ir.Expr.call(function, (), (), loc), done, loc),
        ]

    def _replaced(self, block: Any, call: Any, written: Any) -> bool:
        if written is None:
            return False
        for stmt in block.body:
            if isinstance(stmt, ir.Assign) and stmt.target == call.func:
                stmt.value = ir.Global(written.__name__, written, stmt.loc)
                return True
        return False
