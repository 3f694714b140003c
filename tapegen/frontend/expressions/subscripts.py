"""Subscripts: elements, views and copies of arrays; items of containers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import gast
import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.expressions.array_indexing import array_index, is_array_item, is_one_bool
from tapegen.frontend.expressions.expressions import Given, evaluate, evaluates
from tapegen.frontend.expressions.unions import split
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.templates import builtin_functions, ufunc_methods
from tapegen.frontend.values.captures import captured_child, lacks_item, special_method
from tapegen.frontend.values.complex_parts import is_part, part_of
from tapegen.frontend.values.constant_shapes import note_part
from tapegen.frontend.values.context import Context, NeedsConstant, NeedsStatements
from tapegen.frontend.values.dynamic_lists import item as list_item
from tapegen.frontend.values.materialize import (
    describe,
    expr_of,
    is_int,
    operand,
    poison_check,
    run_list_of,
    static,
    struct_of,
    type_of,
)
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct, children_of, list_of, tuple_of
from tapegen.frontend.values.state import Captured, Choice, Ref, Series, SliceValue, View, known_value
from tapegen.frontend.values.type_sets import note_kinds
from tapegen.ir import intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Load, Var
from tapegen.ir.types import BOOL, Array, Scalar, is_floating, python_class
from tapegen.rules.numpy import decompositions


@dataclass(slots=True)
class Place:
    """The target of a subscript: `base[index]`."""

    base: Any
    index: list[Any]

    @property
    def is_array(self) -> bool:
        return isinstance(self.base, Leaf) and isinstance(self.base.type, Array)

    @property
    def is_element(self) -> bool:
        """Whether it is one element of an array."""
        type_ = self.base.type
        return isinstance(type_, Array) and len(self.index) == type_.rank and all(map(is_int, self.index))

    @property
    def is_view(self) -> bool:
        """Whether reading it gives a view of the array."""
        return not self.is_element and not any(_is_position(part) or _is_mask(part) for part in self.index)

    @property
    def repeats(self) -> bool:
        """Whether it may select an element twice (an integer array in the index)."""
        return any(_is_position(part) for part in self.index)


def _is_mask(part: Any) -> bool:
    return isinstance(part, Leaf) and isinstance(part.type, Array)


def _is_position(part: Any) -> bool:
    if isinstance(part, Leaf) and isinstance(part.type, Array):
        return part.type.dtype != "bool"
    return isinstance(part, (Ref, Captured, Struct))


@evaluates(gast.Slice)
def _slice(cx: Context, node: gast.Slice, hint: str | None) -> Any:
    parts = (None if part is None else evaluate(cx, part) for part in (node.lower, node.upper, node.step))
    return SliceValue(*(None if isinstance(part, StaticValue) and part.value is None else part for part in parts))


@evaluates(gast.Subscript)
def _subscript(cx: Context, node: gast.Subscript, hint: str | None) -> Any:
    return load_place(cx, place_of(cx, node), hint)


def place_of(cx: Context, node: gast.Subscript) -> Place:
    """Evaluate the parts of a subscript; `a[i][j]` of an array is `a[i, j]`."""
    base_node = node.value
    if isinstance(base_node, gast.Attribute) and base_node.attr == "flat":
        owner = evaluate(cx, base_node.value)
        base_node = gast.copy_location(gast.Attribute(Given(owner), "flat", gast.Load()), base_node)
        if (
            isinstance(owner, Leaf)
            and isinstance(owner.type, Array)
            and owner.type.layout != "C"
            and owner.type.rank > 1
        ):
            return _element_of_flat(cx, owner, _index_values(cx, node.slice), base_node)
    base = _evaluate_base(cx, base_node)
    seen, position = cx.effects, len(cx.builder.items)
    index = _index_values(cx, node.slice)
    if cx.effects != seen and isinstance(base, Place):
        later = cx.builder.items[position:]
        del cx.builder.items[position:]
        base = load_place(cx, base)
        cx.builder.items.extend(later)
    if not isinstance(base, Place):
        return Place(base, index)
    joined = Place(base.base, [*base.index, *index])
    array = base.base.type
    if (
        sum(1 for part in index if is_int(part) or isinstance(part, SliceValue)) == len(index)
        and len(joined.index) <= array.rank
    ):
        return joined
    return Place(load_place(cx, base), index)


def _evaluate_base(cx: Context, node: gast.AST) -> Any:
    """A value, or the Place of a row of an array (`a[i]`) that a further subscript goes into."""
    if not isinstance(node, gast.Subscript):
        return evaluate(cx, node)
    with cx.at(node):
        place = place_of(cx, node)
        if place.is_array and place.index and all(map(is_int, place.index)) and len(place.index) < place.base.type.rank:
            return place
        return load_place(cx, place)


def _element_of_flat(cx: Context, array: Leaf, index: list[Any], flat: gast.Attribute) -> Place:
    """`array.flat[k]` where `np.ravel` may be a copy: the k-th element in the order of C."""
    if len(index) != 1 or not is_int(index[0]):
        return Place(evaluate(cx, flat), index)
    place = cx.call(cx, StaticValue(ufunc_methods.place_in_flat), (array, index[0]), {})
    assert isinstance(place, Struct)
    return Place(array, [*place.children])


def _index_values(cx: Context, node: gast.AST) -> list[Any]:
    if isinstance(node, gast.Tuple):
        return [evaluate(cx, part) for part in node.elts]
    value = evaluate(cx, node)
    if isinstance(value, Struct) and value.kind == "tuple":
        return list(value.children)
    return [value]


def _joined(cx: Context, maker: Any, index: list[Any]) -> Any:
    """`np.r_[...]` and `np.c_[...]`: slices are ranges."""
    parts: list[Any] = []
    numbers: list[Any] = []
    for part in index:
        if isinstance(part, SliceValue):
            step = None if part.step is None else known_value(part.step)
            if isinstance(step, complex):
                bounds = (StaticValue(0) if part.lo is None else part.lo, part.hi, StaticValue(int(abs(step))))
                part = cx.call(cx, StaticValue(np.linspace), bounds, {})
            else:
                bounds = (part.lo or StaticValue(0), part.hi, part.step or StaticValue(1))
                part = cx.call(cx, StaticValue(np.arange), bounds, {})
        type_ = type_of(part)
        if not isinstance(type_, (Array, Scalar)):
            raise cx.refusal(
                NotDifferentiable,
                f"np.{_JOINERS[maker][0]} gets {describe(cx, part)}.",
                "Use np.concatenate or np.stack.",
            )
        parts.append(part)
        is_weak = isinstance(type_, Scalar) and type_.python
        numbers.append(_WEAK[type_.dtype] if is_weak else type_.dtype)
    dtype = StaticValue(np.result_type(*numbers).type)
    return cx.call(cx, StaticValue(_JOINERS[maker][1]), (tuple_of(parts), dtype), {})


_JOINERS: dict[Any, tuple[str, Any]] = {np.r_: ("r_", decompositions.in_rows), np.c_: ("c_", decompositions.in_columns)}
_WEAK: dict[str, Any] = {"bool": False, "int64": 0, "float64": 0.0, "complex128": 0j}  # Python scalars


def load_place(cx: Context, place: Place, hint: str | None = None) -> Any:
    """The value of `base[index]`."""
    base, index = place.base, place.index
    if any(isinstance(part, Choice) for part in (base, *index)):
        return split(cx, (base, *index), lambda owner, *parts: load_place(cx, Place(owner, list(parts)), hint), hint)
    index = bools_as_numbers(cx, index)
    if is_of_numpy(base):
        if is_single_bool(index):
            return cx.call(cx, StaticValue(builtin_functions.selected), (base, *index), {})
        if not place.is_array and all(isinstance(part, StaticValue) and part.value in (None, ...) for part in index):
            base = emit_call(cx, np.array, (base,)) if index else base
            return load_element(cx, base, index, hint) if index else base
    if place.is_array:
        return load_element(cx, base, index, hint)
    if isinstance(base, StaticValue) and (base.value is np.r_ or base.value is np.c_):
        return _joined(cx, base.value, index)
    if isinstance(base, StaticValue) and (base.value is np.mgrid or base.value is np.ogrid):
        return cx.call(cx, base, index, {})
    if isinstance(base, Captured):
        found = _captured_item(cx, base, index)
        if found is not None:
            return found
    run_list = run_list_of(cx, base)
    if run_list is not None:
        if len(index) == 1 and is_int(index[0]):
            return list_item(cx, run_list, index[0], hint)
        if len(index) == 1 and isinstance(index[0], SliceValue):
            bounds = [StaticValue(None) if part is None else part for part in (index[0].lo, index[0].hi)]
            if index[0].step is None:
                return cx.call(cx, StaticValue(builtin_functions.sliced), (base, *bounds), {})
            step = StaticValue(static(cx, index[0].step, "the step of this slice"))
            return cx.call(cx, StaticValue(builtin_functions.sliced_by_step), (base, *bounds, step), {})
        raise cx.refusal(
            NotDifferentiable, "a growing list is indexed by one integer only.", "Make an array of it: np.array(x)."
        )
    if isinstance(base, StaticValue):
        return _static_item(cx, base, index)
    if isinstance(base, Series):
        return cx.call(cx, StaticValue(range.__getitem__), [base, *index], {})
    if isinstance(base, View):
        cx.raise_(TypeError, f"'{base.cls.__name__}' object is not subscriptable")
    content = struct_of(cx, base)
    if content is None:
        if isinstance(base, Leaf) and isinstance(base.type, Scalar) and not base.type.python:
            cx.raise_(IndexError, "invalid index to scalar variable.")
        cx.raise_(
            TypeError, f"'{'float' if isinstance(base, Leaf) else type(base).__name__}' object is not subscriptable"
        )
    if content.kind == "object":
        method = special_method(cx, content.cls, "__getitem__")
        if method is None:
            cx.raise_(TypeError, f"'{content.cls.__name__}' object is not subscriptable")
        return cx.call(cx, StaticValue(method), (base, index[0] if len(index) == 1 else tuple_of(index)), {})
    return _item(cx, content, index)


def _captured_item(cx: Context, base: Captured, index: Sequence[Any]) -> Any:
    struct = children_of(base.value)
    if struct is None or len(index) != 1 or struct.kind == "object":
        return None
    known = known_value(index[0])
    if known is UNKNOWN or isinstance(index[0], SliceValue):
        return None
    try:
        value = base.value[known]
    except (KeyError, IndexError, TypeError) as error:
        lacks_item(cx, base, known)
        cx.raise_(type(error), *(str(part) for part in error.args))
    return captured_child(cx, base, known, value, lambda owner: owner[known])


def _static_item(cx: Context, base: StaticValue, index: Sequence[Any]) -> Any:
    if base.value is np.s_:  # an index as a value
        return tuple_of(index) if len(index) != 1 else index[0]
    keys = [static_index(cx, part) for part in index]
    try:
        return StaticValue(base.value[keys[0] if len(keys) == 1 else tuple(keys)])
    except (KeyError, IndexError, TypeError) as error:
        cx.raise_(type(error), *(str(part) for part in error.args))


def static_index(cx: Context, part: Any) -> Any:
    if isinstance(part, SliceValue):
        bounds = (
            None if item is None else static(cx, item, "a bound of this slice")
            for item in (part.lo, part.hi, part.step)
        )
        return slice(*bounds)
    return static(cx, part, "this index")


def as_key(index: Sequence[Any]) -> Any:
    """The index as one value: `d[a, b]` is `d[(a, b)]`."""
    return index[0] if len(index) == 1 else tuple_of(index)


def _item(cx: Context, content: Struct, index: Sequence[Any]) -> Any:
    """An item or slice of a tuple, list or dict."""
    if content.kind == "dict":
        key = static(cx, as_key(index), "a key of a dict")
        if key not in content.keys:
            cx.raise_(KeyError, key if isinstance(key, str) else str(key))
        return content.get(key)
    if len(index) != 1:
        cx.raise_(TypeError, f"{content.kind} indices must be integers or slices, not tuple")
    (part,) = index
    if isinstance(part, SliceValue):
        children = content.children[static_index(cx, part)]
        return tuple_of(children) if content.kind == "tuple" else cx.new_cell(list_of(children))
    if type_of(part) == BOOL and known_value(part) is UNKNOWN:
        part = emit_call(cx, int, (part,))
    if not is_int(part) and not isinstance(known_value(part), bool):
        found = known_value(part)
        kind = "float" if found is UNKNOWN else type(found).__name__
        cx.raise_(TypeError, f"{content.kind} indices must be integers or slices, not {kind}")
    known = known_value(part)
    if known is UNKNOWN:
        return _computed_item(cx, content, part)
    if not -len(content.children) <= known < len(content.children):
        cx.raise_(IndexError, f"{content.kind} index out of range")
    return poison_check(cx, content.children[known])


def _computed_item(cx: Context, content: Struct, part: Any) -> Any:
    """An item at a computed position: scalars of one type can be selected at run time."""
    types = {type_of(child) for child in content.children}
    scalars = [type_ for type_ in types if isinstance(type_, Scalar)]
    type_ = min(scalars, key=lambda scalar: scalar.python, default=None)  # one of NumPy stands for Python's numbers too
    if type_ is not None and all(other == type_ or _is_python_number(other, type_) for other in types):
        known = len(types) == 1 and all(isinstance(child, StaticValue) for child in content.children)
        if is_floating(type_) and not known:
            array = emit_call(cx, np.array, (content,))
            found = load_place(cx, Place(array, [part]))
            # an element of an array is a NumPy scalar
            if type_.python:
                return emit_call(cx, python_class(type_), (found,))
            note_kinds(cx, found.expr, [expr_of(cx, child) for child in content.children])
            return found
        call = Call(intrinsics.item, (operand(cx, content), expr_of(cx, part)), (), type_)
        if is_floating(type_) and not cx.whole:
            return Leaf(cx.assign(TEMPORARY, call))
        return Leaf(call)
    refusal = cx.refusal(
        NotDifferentiable,
        f"the index into this {content.kind} must be known before the program runs.",
        "Loop over the items themselves, or stack them into one array.",
    )
    raise NeedsConstant(expr_of(cx, part), refusal)


def _is_python_number(type_: Any, scalar: Scalar) -> bool:
    """Whether a type is that of Python's numbers of the dtype of a NumPy scalar; that of floats has a type set."""
    return is_floating(scalar) and type_ == replace(scalar, python=True)


def load_element(cx: Context, base: Leaf, index: Sequence[Any], hint: str | None) -> Any:
    if is_part(base):
        return _load_part(cx, base, index, hint)
    array = operand(cx, base)
    assert isinstance(array.type, Array)
    items, type_ = array_index(cx, array.type, index)
    if not isinstance(array, Var):
        raise NeedsStatements
    if isinstance(type_, Array) and array in cx.symbols.flat and not any(map(is_array_item, items)):
        part = Leaf(cx.assign(TEMPORARY, Load(array, items, type_)) if items else array)
        return emit_call(cx, np.copy, (part,), hint=hint)
    if isinstance(type_, Array) and not items:
        return Leaf(array)
    load = Load(array, items, type_)
    if isinstance(type_, Scalar) and (cx.whole or not is_floating(type_)):
        return Leaf(load)
    var = cx.assign(hint or TEMPORARY, load)
    if isinstance(type_, Array) and not any(is_array_item(item) for item in items):
        cx.symbols.roots[var] = cx.symbols.roots_of(array)
    note_part(cx, var, load)
    return Leaf(var)


def _load_part(cx: Context, base: Leaf, index: Sequence[Any], hint: str | None) -> Any:
    """An element or view of an unread real or imaginary part: that part of the element or view of the array."""
    part = base.expr
    assert isinstance(part, Call)
    seen = load_element(cx, Leaf(part.args[0]), index, None)
    if isinstance(seen.type, Array):
        return part_of(cx, part.func, seen.expr)
    return emit_call(cx, part.func, (seen,), hint=hint)


def is_of_numpy(base: Any) -> bool:
    """Whether a value is an array, or a NumPy scalar, which is indexed like a zero-dimensional array."""
    type_ = base.type if isinstance(base, Leaf) else None
    return isinstance(type_, Array) or (isinstance(type_, Scalar) and not type_.python)


def bools_as_numbers(cx: Context, index: list[Any]) -> list[Any]:
    """An index with a bool for each array of one bool without axes."""
    return [load_place(cx, Place(part, [])) if _is_bool_without_axes(part) else part for part in index]


def _is_bool_without_axes(part: Any) -> bool:
    type_ = type_of(part)
    return isinstance(type_, Array) and type_.rank == 0 and type_.dtype == "bool"


def is_single_bool(index: Sequence[Any]) -> bool:
    return len(index) == 1 and is_one_bool(index[0])
