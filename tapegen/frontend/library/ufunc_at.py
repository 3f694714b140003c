"""`ufunc.at(array, indices, values)`: an unbuffered operation, applied once for each occurrence of a position.

The values are broadcast to the positions, as NumPy documents.  (`np.add.at` of NumPy 2.4 reads past the end of a
vector of values where a vector is indexed by a matrix.)
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.expressions.subscript_stores import store_place
from tapegen.frontend.expressions.subscripts import Place, load_place
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.templates import ufunc_methods
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import operand, type_of
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct
from tapegen.frontend.values.state import Captured, Ref
from tapegen.ir.nodes import Var
from tapegen.ir.types import Array, Scalar

_ADDED = {np.add: False, np.subtract: True}
"""Functions that become accumulating stores, and whether with negated values."""


def apply_at(cx: Context, ufunc: np.ufunc, base: Any, index: Any, values: tuple[Any, ...]) -> StaticValue:
    """Lower a call; `values` is empty for functions of one operand."""
    if not isinstance(base, Leaf) or not isinstance(base.type, Array):
        raise cx.refusal(NotDifferentiable, f"np.{ufunc.__name__}.at changes arrays.", "Pass an array.")
    values = tuple(_without_overlap(cx, base, _as_array(cx, value)) for value in values)
    for value in values:
        type_ = type_of(value)
        if isinstance(type_, (Array, Scalar)) and not np.can_cast(type_.dtype, base.type.dtype, "same_kind"):
            text = f"cannot cast the result of np.{ufunc.__name__} from {type_.dtype} to {base.type.dtype}"
            cx.raise_(TypeError, text)
    items = index.children if isinstance(index, Struct) and index.kind == "tuple" else (index,)
    place = Place(base, [_as_array(cx, item) for item in items])
    if ufunc in _ADDED:
        (value,) = values
        if _is_misread(base.type, place, value):
            shape = cx.call(cx, StaticValue(np.shape), (place.index[0],), {})
            value = emit_call(cx, np.broadcast_to, (value, shape))
        store_place(cx, place, emit_call(cx, operator.neg, (value,)) if _ADDED[ufunc] else value, accumulate=True)
    elif not _may_repeat(place):
        part = load_place(cx, place)
        if any(_rank(value) > _rank(part) for value in values):
            cx.raise_(ValueError, "array is not broadcastable to correct shape")
        store_place(cx, place, cx.call(cx, StaticValue(ufunc), (part, *values), {}))
    else:
        positions = place.index[0]
        if base.type.rank > 1 or len(place.index) > 1:  # each position as an index into the flattened array
            numbers = cx.call(cx, StaticValue(ufunc_methods.numbered), (base,), {})
            positions = load_place(cx, Place(numbers, place.index))
        written: Any = ufunc_methods.each_at if values else ufunc_methods.each_changed_at
        cx.call(cx, StaticValue(written), (StaticValue(ufunc), base, positions, *values), {})
    return StaticValue(None)


def _rank(value: Any) -> int:
    type_ = type_of(value)
    return type_.rank if isinstance(type_, Array) else 0


def _as_array(cx: Context, value: Any) -> Any:
    """A list as an array."""
    is_list = isinstance(value, (Struct, Ref, Captured)) and type_of(value) is None
    return emit_call(cx, np.array, (value,)) if is_list else value


def _without_overlap(cx: Context, base: Leaf, value: Any) -> Any:
    """The values, copied if they may alias the array."""
    if isinstance(value, Leaf) and isinstance(value.type, Array):
        target, source = operand(cx, base), operand(cx, value)
        if isinstance(target, Var) and isinstance(source, Var) and cx.symbols.may_overlap(target, source):
            return emit_call(cx, np.copy, (value,))
    return value


def _may_repeat(place: Place) -> bool:
    """Whether an index may select a position twice: it contains integer arrays, possibly with a mask."""
    types = [type_of(item) for item in place.index]
    arrays = [type_ for type_ in types if isinstance(type_, Array)]
    return bool(arrays) and not (len(types) == 1 and arrays[0].dtype == "bool")


def _is_misread(base: Array, place: Place, value: Any) -> bool:
    """Whether NumPy may read past the end of a vector of values (see above)."""
    type_, positions = type_of(value), type_of(place.index[0])
    is_matrix = len(place.index) == 1 and isinstance(positions, Array) and positions.rank > 1
    return base.rank == 1 and is_matrix and isinstance(type_, Array) and type_.rank == 1
