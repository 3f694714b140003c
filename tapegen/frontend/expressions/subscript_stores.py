"""Stores into subscripts: elements, parts and selections of arrays, items of lists and dicts."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegen.errors import AliasError, NotDifferentiable, TapegenError
from tapegen.frontend.expressions.array_indexing import array_index, is_array_item, is_mask_of_all
from tapegen.frontend.expressions.expressions import spread
from tapegen.frontend.expressions.overlapping_stores import is_stored_as_copied
from tapegen.frontend.expressions.subscripts import (
    Place,
    as_key,
    bools_as_numbers,
    is_single_bool,
    load_element,
    load_place,
    static_index,
)
from tapegen.frontend.expressions.unions import each_kind
from tapegen.frontend.lowering.emit import emit_call, is_view
from tapegen.frontend.mutation.caller_objects import note_key
from tapegen.frontend.mutation.written_captures import write_captured
from tapegen.frontend.templates import builtin_functions
from tapegen.frontend.values.captures import special_method
from tapegen.frontend.values.complex_parts import PARTS, follow_parts, is_part, part_of
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.dynamic_lists import set_item, set_slice, widen_cell
from tapegen.frontend.values.materialize import (
    array_operand,
    describe,
    expr_of,
    is_int,
    operand,
    run_list_of,
    static,
    struct_of,
    type_of,
)
from tapegen.frontend.values.narrowing import write_through_view
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct, list_of
from tapegen.frontend.values.state import Captured, Choice, Ref, SliceValue, known_value
from tapegen.frontend.values.type_sets import kinds_of, narrower_dtype
from tapegen.ir import intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Load, Var
from tapegen.ir.types import Array, Scalar, Type, is_complex, python_class


def store_place(cx: Context, place: Place, value: Any, *, accumulate: bool = False) -> None:
    """`base[index] = value` (or `+=`)."""
    base, index = place.base, place.index
    into_array = place.is_array or isinstance(base, Choice)
    if any(isinstance(part, Choice) for part in (base, *index)) or (into_array and isinstance(value, Choice)):

        def store(owner: Any, new: Any, *parts: Any) -> None:
            store_place(cx, Place(owner, [*parts]), new, accumulate=accumulate)

        each_kind(cx, (base, value, *index), store)
        return
    if is_part(base):
        _store_part(cx, base, index, value, accumulate=accumulate)
        return
    index = bools_as_numbers(cx, index)
    place = Place(base, index)
    if place.is_array:
        if is_single_bool(index):
            _store_selected(cx, place, value, accumulate=accumulate)
            return
        _store(cx, base, index, value, accumulate=accumulate)
        return
    if isinstance(base, Ref):
        content = struct_of(cx, base) or cx.state.cells[base.cell].content
        if isinstance(content, Struct) and content.kind == "dict":
            key = static(cx, as_key(index), "a key of a dict")
            note_key(cx, base, key)
            cx.set_cell(base, content.with_child(key, value))
            return
        if isinstance(content, Struct) and content.kind == "object":
            method = special_method(cx, content.cls, "__setitem__")
            if method is not None:
                cx.call(cx, StaticValue(method), (base, as_key(index), value), {})
                return
        if len(index) == 1 and is_int(index[0]):
            if isinstance(content, Struct) and known_value(index[0]) is UNKNOWN:
                if not all(type_of(item) is not None for item in (*content.children, value)):
                    static(cx, index[0], "the index into a list of other things than numbers and arrays")
                widen_cell(cx, base.cell, [(content, cx.state), (list_of((value,)), cx.state)])
            set_item(cx, base, index[0], value)
            return
        if getattr(content, "kind", "") == "list" and len(index) == 1 and isinstance(index[0], SliceValue):
            set_slice(cx, base, static_index(cx, index[0]), spread(cx, value))
            return
    if isinstance(base, Captured):
        write_captured(cx, base)
    if isinstance(base, Struct):
        cx.raise_(TypeError, "'tuple' object does not support item assignment")
    if isinstance(number := type_of(base), Scalar):
        if any(isinstance(kind, Array) for kind in kinds_of(cx, expr_of(cx, base))):
            raise cx.refusal(
                NotDifferentiable,
                f"{describe(cx, base)} may be an array without axes or a number here, of which nothing can be set.",
                "Pass arrays (np.atleast_1d(x)), or choose with np.where: w = np.where(mask, new, w).",
            )
        name = python_class(number).__name__ if number.python else f"numpy.{np.dtype(number.dtype).type.__name__}"
        cx.raise_(TypeError, f"'{name}' object does not support item assignment")
    raise cx.refusal(NotDifferentiable, f"this part of {describe(cx, base)} cannot be set.", "Use an array.")


def _is_number(value: Any) -> bool:
    type_ = type_of(value)
    return isinstance(type_, Scalar) or (isinstance(type_, Array) and type_.rank == 0)


def _store_selected(cx: Context, place: Place, value: Any, *, accumulate: bool) -> None:
    """`base[chosen] = value` of a single bool."""
    if accumulate:
        value = emit_call(cx, operator.add, (load_place(cx, place), value))
    of_number = getattr(type_of(place.base), "rank", None) == 0 and _is_number(value)
    text = builtin_functions.store_where if of_number else builtin_functions.store_selected
    cx.call(cx, StaticValue(text), (place.base, *place.index, value), {})


def _store(cx: Context, base: Leaf, index: Sequence[Any], value: Any, *, accumulate: bool) -> None:
    array = array_operand(cx, base)
    assert isinstance(array.type, Array)
    if _is_read_only(cx, array):
        cx.raise_(ValueError, "assignment destination is read-only")
    write_through_view(cx, array)
    items, part = array_index(cx, array.type, index)
    if type_of(value) is None:
        if isinstance(value, StaticValue) or (struct_of(cx, value) is None and run_list_of(cx, value) is None):
            raise cx.refusal(NotDifferentiable, f"{describe(cx, value)} is stored into an array.", "Store numbers.")
        made = emit_call(cx, np.array, (value,))
        if "int" in array.type.dtype and type_of(made).dtype != array.type.dtype:  # type: ignore[union-attr]
            # a number that is out of bounds raises
            made = emit_call(cx, np.array, (value,), {"dtype": StaticValue(np.dtype(array.type.dtype))})
        value = made
    surplus = getattr(type_of(value), "rank", 0) - getattr(part, "rank", 0) if isinstance(part, Array) else 0
    if accumulate:
        check_rank(cx, part, type_of(value))
    elif surplus > 0:  # NumPy drops leading axes of size 1
        value = emit_call(cx, np.squeeze, (value,), {"axis": StaticValue(tuple(range(surplus)))})
    expr = operand(cx, value)
    stored = expr.type
    _check_complex(cx, array, stored)
    _check_narrower(cx, base, array, stored)
    if isinstance(stored, Array):
        if isinstance(part, Scalar):
            expr = _only_element(cx, expr)
        elif isinstance(expr, Var) and cx.symbols.may_overlap(array, expr):
            one_by_one = array in cx.symbols.flat or is_mask_of_all(array.type, items)
            if isinstance(part, Array) and part.rank == 1 and not any(map(is_array_item, items)):
                one_by_one = one_by_one or not is_stored_as_copied(cx, array, items, expr)
            if one_by_one and not accumulate:
                reason = "NumPy stores this element by element, while it reads an array that may share memory."
                raise cx.refusal(AliasError, reason, "Store a copy (x.copy()).")
            # NumPy reads all of the right side before it writes
            expr = cx.assign(TEMPORARY, Call(np.copy, (expr,), (), dataclasses.replace(stored, layout="C")))
    cx.store(array, items, expr, accumulate=accumulate)


def check_rank(cx: Context, target: Type | None, made: Type | None) -> None:
    """Raise as NumPy does where an in-place operation makes more axes than its target has, be they of size 1."""
    rank = made.rank if isinstance(made, Array) else 0
    if isinstance(target, Array) and rank > target.rank:
        cx.raise_(
            ValueError,
            f"non-broadcastable output operand of {target.rank} axes doesn't match the broadcast shape of {rank} axes",
        )


def _store_part(cx: Context, base: Leaf, index: list[Any], value: Any, *, accumulate: bool) -> None:
    """Store a part together with the other part of the complex array, which keeps its value and zero sign."""
    part = base.expr
    assert isinstance(part, Call)
    if type_of(value) is None:
        value = emit_call(cx, np.array, (value,))
    if is_complex(type_of(value)):
        raise _loses_parts(cx, "a part of an array")
    array = part.args[0]
    assert isinstance(array, Var)
    whole = Leaf(array)
    (other,) = [func for func in PARTS.values() if func is not part.func]
    kept: Any = StaticValue(-0.0)
    if not accumulate:
        seen = load_element(cx, whole, index, None)
        if cx.symbols.roots_of(array) is None and isinstance(seen.type, Array):  # no view that has a shadow view
            seen = emit_call(cx, np.copy, (seen,))
        kept = part_of(cx, other, seen.expr) if isinstance(seen.type, Array) else emit_call(cx, other, (seen,))
    parts = (value, kept) if part.func is intrinsics.real_part else (kept, value)
    arrays = any(isinstance(type_of(each), Array) for each in parts)
    together = emit_call(cx, intrinsics.of_parts if arrays else complex, parts)
    store_place(cx, Place(whole, index), together, accumulate=accumulate)


def _is_read_only(cx: Context, array: Var) -> bool:
    """Whether an array is a read-only view of NumPy, or a part of one."""
    made = cx.symbols.definitions.get(array)
    while isinstance(made, Load):
        made = cx.symbols.definitions.get(made.array)
    if isinstance(made, Call) and made.func is np.diag:
        return isinstance(made.type, Array) and made.type.rank == 1
    views = (np.broadcast_to, np.diagonal, np.lib.stride_tricks.sliding_window_view)
    return isinstance(made, Call) and made.func in views


def _check_narrower(cx: Context, base: Leaf, array: Var, stored: Type) -> None:
    """Refuse a store into an array that holds integers on some paths only: there values would lose their fraction."""
    dtype = narrower_dtype(cx, array)
    if dtype is not None and not np.can_cast(stored.dtype, dtype, "same_kind"):  # type: ignore[union-attr]
        raise cx.refusal(
            NotDifferentiable,
            f"{describe(cx, base)} is of dtype {dtype} on some path, which does not take what is stored here as it is.",
            "Make it of numbers that are floats on all paths: 0.0 instead of 0.",
        )


def _check_complex(cx: Context, array: Var, stored: Type) -> None:
    """Refuse complex values stored into real arrays, and stores into parts of complex arrays not known as such."""
    if not is_complex(array.type) and _shows_part(cx, array):
        follow_parts(cx)
        raise cx.refusal(
            NotDifferentiable,
            "this writes into the real or imaginary parts of an array that has another name here.",
            "Write z.real[...] = x, or store complex numbers: z[...] = x + 1j * y.",
        )
    if is_complex(stored) and not is_complex(array.type):
        raise _loses_parts(cx, f"'{array.name.partition('#')[0]}'")


def _shows_part(cx: Context, array: Var) -> bool:
    """Whether an array is certainly a part of a complex one, or a view of that."""
    roots = cx.symbols.roots_of(array)
    if roots is not None:
        return any(is_complex(root.type) for root in roots)
    made = cx.symbols.definitions.get(array)
    if isinstance(made, Load):
        return _shows_part(cx, made.array)
    if not isinstance(made, Call) or not made.args or not isinstance(made.args[0], Var):
        return False
    return made.func in PARTS.values() or (is_view(made) and _shows_part(cx, made.args[0]))


def _loses_parts(cx: Context, place: str) -> TapegenError:
    return cx.refusal(
        NotDifferentiable,
        f"complex numbers are stored into {place}, which is real, and lose their imaginary parts.",
        "Make the array complex (dtype=complex), or store z.real.",
    )


def _only_element(cx: Context, array: Any) -> Any:
    """The element of a size-1 array that is stored as a scalar."""
    rank = array.type.rank
    if rank:
        raise cx.refusal(NotDifferentiable, "an array is stored into one element.", "Index it to get a number.")
    return cx.assign(TEMPORARY, Load(array, (), Scalar(array.type.dtype, python=False)))
