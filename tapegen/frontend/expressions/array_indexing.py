"""Array indexing: normalizes index items, and infers the type of the selection."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable, TapegenError
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import expr_of, int_expr, is_int, operand, struct_of, type_of
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct
from tapegen.frontend.values.result_types import NoResultType, result_type
from tapegen.frontend.values.state import Captured, Ref, SliceValue
from tapegen.ir.nodes import Const, Index, Slice
from tapegen.ir.types import Array, Scalar, Type, is_floating

_BAD_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays "
    "are valid indices"
)


def is_array_item(item: Index) -> bool:
    return not isinstance(item, Slice) and isinstance(item.type, Array)


def is_mask_of_all(array: Array, items: Sequence[Index]) -> bool:
    """Whether an index is a single mask of the array's rank."""
    types = [item.type for item in items if not isinstance(item, Slice)]
    return len(items) == 1 and any(isinstance(t, Array) and t.dtype == "bool" and t.rank == array.rank for t in types)


def array_index(cx: Context, array: Array, index: Sequence[Any]) -> tuple[tuple[Index, ...], Type]:
    """The items of an index into an array, and the type of the selection."""
    parts = _expanded(cx, array, [_index_item(cx, part) for part in index])
    if any(is_array_item(part) for part in parts):
        return tuple(parts), _advanced_type(cx, array, parts)
    return tuple(parts), _basic_type(array, parts, scalar=len(parts) == array.rank and not _has_ellipsis(index))


def _has_ellipsis(index: Sequence[Any]) -> bool:
    return any(isinstance(part, StaticValue) and part.value is Ellipsis for part in index)


def _index_item(cx: Context, part: Any) -> Any:
    if isinstance(part, SliceValue):
        return Slice(*(None if bound is None else _bound(cx, bound) for bound in (part.lo, part.hi, part.step)))
    if isinstance(part, StaticValue):
        value = part.value
        if value is None or value is Ellipsis:
            return Const(value)
        if isinstance(value, slice):
            return Slice(
                *(None if bound is None else Const(int(bound)) for bound in (value.start, value.stop, value.step))
            )
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return Const(int(value))
        if isinstance(value, (bool, np.bool_)):
            raise _one_bool(cx)
    if is_int(part):
        return expr_of(cx, part)
    if isinstance(part, Leaf) and isinstance(part.type, Array) and not is_floating(part.type):
        return operand(cx, part)
    if isinstance(part, (Ref, Captured, Struct)):
        made = emit_call(cx, np.array, (part,), _of_no_items(cx, part))
        if isinstance(made, Leaf) and isinstance(made.type, Array) and not is_floating(made.type):
            return operand(cx, made)
    if is_one_bool(part):
        raise _one_bool(cx)
    cx.raise_(IndexError, _BAD_INDEX)


def is_one_bool(part: Any) -> bool:
    """Whether an index is True or False, Python's or NumPy's: it selects all or nothing."""
    type_ = type_of(part)
    return isinstance(type_, Scalar) and type_.dtype == "bool"


def _one_bool(cx: Context) -> TapegenError:
    return cx.refusal(
        NotDifferentiable,
        "a bool among indices is not supported.",
        "Use an if, or np.where: w = np.where(mask, new, w).",
    )


def _of_no_items(cx: Context, part: Any) -> dict[str, Any]:
    """Keywords for an index array: an empty sequence is an integer index, while `np.array([])` holds floats."""
    content = struct_of(cx, part)
    return {"dtype": StaticValue(np.dtype(int))} if content is not None and not content.children else {}


def _bound(cx: Context, bound: Any) -> Any:
    if not is_int(bound):
        cx.raise_(TypeError, "slice indices must be integers or None or have an __index__ method")
    return int_expr(cx, bound)


def _expanded(cx: Context, array: Array, parts: list[Any]) -> list[Any]:
    """Expand `...` to full slices, and check the number of indices."""

    def taken(part: Any) -> int:
        if isinstance(part, Const) and (part.value is None or part.value is Ellipsis):
            return 0
        if is_array_item(part) and part.type.dtype == "bool":
            return part.type.rank
        return 1

    used = sum(map(taken, parts))
    if used > array.rank:
        cx.raise_(IndexError, f"too many indices for array: array is {array.rank}-dimensional, but {used} were indexed")
    out: list[Any] = []
    for part in parts:
        if isinstance(part, Const) and part.value is Ellipsis:
            out.extend([Slice()] * (array.rank - used))
        else:
            out.append(part)
    while out and out[-1] == Slice():
        out.pop()
    return out


def _takes_the_first(part: Slice) -> bool:
    """Whether a slice of an axis of size 1 selects its element."""
    bounds = (part.lo, part.hi, part.step)
    if not all(bound is None or isinstance(bound, Const) for bound in bounds):
        return False
    whole = slice(*(bound.value if isinstance(bound, Const) else None for bound in bounds))
    return len(range(*whole.indices(1))) == 1


def _basic_type(array: Array, parts: list[Any], *, scalar: bool) -> Type:
    rank = array.rank
    units: list[bool] = []
    axis = 0
    contiguous = array.layout == "C"
    lead = True  # only integers so far
    for part in parts:
        if isinstance(part, Const) and part.value is None:
            units.append(True)
        elif isinstance(part, Slice):
            full = part == Slice()
            units.append(array.is_unit(axis) and _takes_the_first(part))
            if not full:
                contiguous = contiguous and lead and part.step in (None, Const(1))
            lead = False
            axis += 1
        else:
            contiguous = contiguous and lead
            axis += 1
    units.extend(array.is_unit(k) for k in range(axis, rank))
    if not units and scalar:
        return Scalar(array.dtype, python=False)
    layout = "C" if contiguous else "F" if array.layout == "F" and _keeps_columns(array, parts) else "A"
    return Array(array.dtype, len(units), layout, tuple(units) if any(units) else ())


def _keeps_columns(array: Array, parts: list[Any]) -> bool:
    """Whether a part of an F-ordered array is F-ordered (or, of rank 1, contiguous): whole columns, from the right."""
    parts = [part for part in parts if not (isinstance(part, Const) and part.value is None)]
    parts += [Slice()] * (array.rank - len(parts))
    kinds = "".join(
        "f"
        if part == Slice()
        else "s"
        if isinstance(part, Slice) and part.step in (None, Const(1))
        else "i"
        if not isinstance(part, Slice)
        else "x"
        for part in parts
    )
    stripped = kinds.lstrip("f")
    return (
        "x" not in kinds
        and (not stripped or (set(stripped[1:]) <= {"i"} and stripped[0] in "si"))
        and len(kinds) > len(stripped)
    )


def _advanced_type(cx: Context, array: Array, parts: list[Any]) -> Type:

    def given(part: Any) -> Any:
        if isinstance(part, Slice):
            return StaticValue(slice(None))
        if part == Const(None):
            return StaticValue(None)
        is_mask = isinstance(part.type, Array) and part.type.dtype == "bool"
        return dataclasses.replace(part.type, unit=()) if is_mask else part.type

    try:
        type_ = result_type(_index, (dataclasses.replace(array, unit=()), tuple(map(given, parts))))
    except NoResultType as error:
        raise cx.refusal(
            NotDifferentiable, f"this index does not fit the array: {error.cause}.", "Check it with NumPy."
        ) from None
    if isinstance(type_, Array):
        return dataclasses.replace(type_, layout="C" if type_.rank == 1 else "A", unit=())
    return type_


def _index(array: np.ndarray, index: tuple[Any, ...]) -> Any:
    return array[index]
