"""Element access in few instructions: from the values of arrays, not through copies of these in memory.

numba copies the fields of an array to the stack for each access, and reads what it needs from there: thirty
instructions for each element, most of which the optimizer removes again.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types


def is_accessible(context: Any, array: Any, index: Any) -> bool:
    """Whether the indices of an access denote an element, and need neither a test of their sign nor one of bounds."""
    items: Any = index if isinstance(index, types.BaseTuple) else [index]
    return (
        type(array) is types.Array
        and not context.enable_boundscheck
        and isinstance(array.dtype, types.Number | types.Boolean)
        and 0 < array.ndim == len(items)
        and all(item == types.uintp for item in items)
    )


def pointer(context: Any, builder: IRBuilder, array_type: Any, array: Value, index_type: Any, index: Value) -> Value:
    """The address of an element.

    Parameters
    ----------
    context : numba.core.base.BaseContext
        The context of the function.
    builder : llvmlite.ir.IRBuilder
        The place in the function.
    array_type, array, index_type, index : numba type or value
        The array, and one unsigned index or a tuple of them.
    """
    items = cgutils.unpack_tuple(builder, index) if isinstance(index_type, types.BaseTuple) else [index]
    data = _field(context, builder, array_type, array, "data")
    if array_type.layout == "A":
        strides = cgutils.unpack_tuple(builder, _field(context, builder, array_type, array, "strides"))
        offsets = [builder.mul(stride, item) for stride, item in zip(strides, items, strict=True)]
        return cgutils.pointer_add(builder, data, functools.reduce(builder.add, offsets))
    axes = cgutils.unpack_tuple(builder, shape(context, builder, array_type, array))
    return builder.gep(data, [_place(builder, axes, items, array_type.layout)])


def _place(builder: IRBuilder, axes: Sequence[Value], items: Sequence[Value], layout: str) -> Value:
    """The number of an element; additions and products in the order of numba's, to which the optimizer is sensitive."""
    terms = []
    for k, item in enumerate(items):
        faster = axes[k + 1 :] if layout == "C" else axes[:k]
        terms.append(builder.mul(item, functools.reduce(builder.mul, faster)) if faster else item)
    return functools.reduce(builder.add, terms)


def shape(context: Any, builder: IRBuilder, array_type: Any, array: Value) -> Value:
    """The shape of an array, a tuple of integers."""
    return _field(context, builder, array_type, array, "shape")


def _field(context: Any, builder: IRBuilder, type_: Any, value: Value, name: str) -> Value:
    return builder.extract_value(value, context.data_model_manager[type_].get_field_position(name))
