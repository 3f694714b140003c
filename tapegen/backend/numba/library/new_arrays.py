"""The allocation of arrays in compiled code."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np.arrayobj import get_itemsize, make_array, populate_array

from tapegen.backend.numba.patches import is_enabled
from tapegen.backend.numba.workspaces import new_memory

_TOO_BIG = "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."


def new_array(context: Any, builder: ir.IRBuilder, type_: Any, shape: Sequence[ir.Value]) -> Any:
    """Emit the allocation of a C-ordered array; ValueError and MemoryError as NumPy raises them.

    numba compiles a function for each dtype to call its allocator; this calls ours.
    """
    array = make_array(type_)(context, builder)
    itemsize = context.get_constant(types.intp, get_itemsize(context, type_))
    count, overflow = itemsize.type(1), ir.IntType(1)(0)
    strides: list[ir.Value] = []
    for size in (*shape, itemsize):
        product = builder.smul_with_overflow(count, size)
        count = builder.extract_value(product, 0)
        overflow = builder.or_(overflow, builder.extract_value(product, 1))
    for size in (itemsize, *reversed(shape[1:])):
        strides.insert(0, builder.mul(strides[0], size) if strides else size)
    with builder.if_then(overflow, likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (_TOO_BIG,))
    alignment = context.get_preferred_array_alignment(type_.dtype)
    if is_enabled("workspaces"):
        memory = new_memory(context, builder, count, alignment)
    else:
        memory = context.nrt.meminfo_alloc_aligned(builder, count, alignment)
    data = context.nrt.meminfo_data(builder, memory)
    number = context.get_value_type(types.intp)
    populate_array(
        array,
        data=builder.bitcast(data, context.get_data_type(type_.dtype).as_pointer()),
        shape=cgutils.pack_array(builder, shape, ty=number),
        strides=cgutils.pack_array(builder, strides[: len(shape)], ty=number),
        itemsize=itemsize,
        meminfo=memory,
    )
    return array


__all__ = ["new_array"]
