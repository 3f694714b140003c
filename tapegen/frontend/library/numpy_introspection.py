"""Introspection functions of NumPy and math, which depend on types or shapes, or write into their arguments."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable, UnsupportedSyntax
from tapegen.frontend.calls.handlers import PASSED_ON, handles, method
from tapegen.frontend.calls.library_calls import call_library
from tapegen.frontend.calls.resolve import call_value
from tapegen.frontend.expressions.expressions import spread
from tapegen.frontend.expressions.subscripts import Place, load_place
from tapegen.frontend.library.attributes import attribute, shape_of
from tapegen.frontend.library.builtins import Args, Hint, Kwargs
from tapegen.frontend.library.sequences import make_list
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.lowering.warnings import begin_errors
from tapegen.frontend.source.desugar import quiet
from tapegen.frontend.templates import library_functions, ufunc_methods
from tapegen.frontend.values.constant_shapes import known_shape, may_be_fixed, sampled_shape
from tapegen.frontend.values.context import Context, NeedsConstant
from tapegen.frontend.values.materialize import expr_of, operand, run_list_of, static, struct_of, type_of
from tapegen.frontend.values.narrowing import note_view_of_number
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, tuple_of
from tapegen.frontend.values.state import Series, known_value
from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Const, Tuple, Var
from tapegen.ir.types import BOOL, INT, Array, Scalar, is_complex, is_floating
from tapegen.rules.gradient_modifiers import SURGERY, print_gradient

# ---- NumPy: shapes and types ---------------------------------------------------------------------------------------


@handles(np.ndim, takes="a")
def _ndim(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return StaticValue(len(_shape_items(cx, args[0])))


@handles(np.shape, takes="a")
def _shape(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if isinstance(args[0], Leaf) and isinstance(args[0].type, Array):
        return shape_of(cx, args[0])
    return tuple_of(_shape_items(cx, args[0]))


def _shape_items(cx: Context, value: Any) -> list[Any]:
    if isinstance(value, Leaf) and isinstance(value.type, Array):
        return list(shape_of(cx, value).children)
    if type_of(value) is not None:
        return []
    children = spread(cx, value)
    parts = [_shape_items(cx, child) for child in children]
    first = parts[0] if parts else []
    for other in parts[1:]:
        _check_same_shape(cx, first, other)
    return [StaticValue(len(children)), *first]


def _check_same_shape(cx: Context, first: list[Any], other: list[Any]) -> None:
    """The parts of a sequence that is read as an array have one shape."""
    if len(first) != len(other):
        cx.raise_(ValueError, _RAGGED)
    for one, another in zip(first, other, strict=True):
        sizes = known_value(one), known_value(another)
        if UNKNOWN not in sizes and sizes[0] != sizes[1]:
            cx.raise_(ValueError, _RAGGED)
        left, right = expr_of(cx, one), expr_of(cx, another)
        if UNKNOWN in sizes and left != right:
            cx.raise_if(Call(operator.ne, (left, right), (), BOOL), ValueError, _RAGGED)


_RAGGED = "setting an array element with a sequence: the parts differ in shape"


@handles(np.indices, takes="dimensions, dtype=int, sparse=False")
def _indices(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    given = dict(zip(("dimensions", "dtype", "sparse"), args, strict=False)) | kwargs
    if known_value(given.pop("sparse", StaticValue(False))) is not False:
        return call_library(cx, np.indices, args, kwargs, hint)
    return cx.call(cx, StaticValue(ufunc_methods.indices), (), given)


@handles(np.size, takes="a, axis=None")
def _size(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    value, *axis = [*args, *kwargs.values()]
    along = static(cx, axis[0], "the axis") if axis else None
    if along is None and isinstance(value, Leaf) and isinstance(value.type, Array):
        return attribute(cx, value, "size")
    sizes = _shape_items(cx, value)
    if along is None:
        return _product(cx, sizes)
    axes = along if isinstance(along, tuple) else (along,)
    if not all(-len(sizes) <= k < len(sizes) for k in axes):
        cx.raise_(IndexError, "tuple index out of range")
    return _product(cx, [sizes[k] for k in axes])


def _product(cx: Context, sizes: Iterable[Any]) -> Any:
    product: Any = StaticValue(1)
    for part in sizes:
        product = call_value(cx, StaticValue(operator.mul), [product, part], {})
    return product


@handles(np.isscalar, takes="element")
def _isscalar(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return StaticValue(isinstance(type_of(args[0]), Scalar) or isinstance(known_value(args[0]), str))


@handles(np.iscomplexobj, takes="x")
def _iscomplexobj(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return StaticValue(is_complex(type_of(args[0])))


@handles(np.isrealobj, takes="x")
def _isrealobj(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return StaticValue(not is_complex(type_of(args[0])))


def _of_types(func: Any, takes: str) -> None:
    @handles(func, takes=takes)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        values = []
        for arg in args:
            type_ = type_of(arg)
            if isinstance(arg, Leaf) and isinstance(type_, (Array, Scalar)):
                values.append(np.dtype(type_.dtype))
            else:
                values.append(static(cx, arg, "a dtype"))
        return StaticValue(func(*values))


_of_types(np.finfo, "dtype")
_of_types(np.iinfo, "type")
_of_types(np.dtype, "dtype")
_of_types(np.issubdtype, "arg1, arg2")
_of_types(np.result_type, "*arrays_and_dtypes")
_of_types(np.promote_types, "type1, type2")
_of_types(np.can_cast, 'from_, to, casting="safe"')

# ---- NumPy: arrays from existing values ----------------------------------------------------------------------------


_ORDERED = {"C": np.ascontiguousarray, "F": np.asfortranarray}


@handles(np.asarray, np.asanyarray, takes="a, dtype=None, order=None, *, copy=None")
def _asarray(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    value, dtype, order = [*args, StaticValue(None), StaticValue(None)][:3]
    return _shared(cx, value, dtype, order, known_value(kwargs.get("copy", StaticValue(None))), hint)


def _shared(cx: Context, value: Any, dtype: Any, order: Any, copies: Any, hint: Hint) -> Any:
    """The array itself if it has the wanted dtype and layout, unless a copy is requested."""
    wanted, layout = static(cx, dtype, "the dtype"), static(cx, order, "'order'")
    if layout not in (None, "C", "F", "A", "K"):
        cx.raise_(ValueError, f"order must be one of 'C', 'F', 'A', or 'K' (got {layout!r})")
    given = {name: known for name, known in (("dtype", dtype), ("order", order)) if known_value(known) is not None}
    if copies is True:
        return _array(cx, [value], {**given, "copy": StaticValue(True)}, hint)
    if isinstance(value, Leaf) and isinstance(value.type, Array):
        ordered = _ORDERED.get(layout)
        if ordered is not None and value.type.rank and copies is None:
            return cx.call(cx, StaticValue(ordered), (value, dtype), {})
        if wanted is None or np.dtype(wanted).name == value.type.dtype:
            return value
    if copies is False:
        raise cx.refusal(NotDifferentiable, "copy=False: a copy is needed here.", "Leave out 'copy='.")
    if isinstance(value, Leaf) and isinstance(value.type, Array):
        return call_library(cx, np.astype, [value, StaticValue(np.dtype(wanted).type)], {}, hint)
    made = _array(cx, [value], {} if wanted is None else {"dtype": StaticValue(wanted)}, hint)
    note_view_of_number(cx, made, value)
    return made


def _contiguous(func: Any, layout: str) -> None:
    @handles(func, takes="a, dtype=None")
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        with_an_axis = {"copy": StaticValue(None), "ndmin": StaticValue(1)}  # NumPy gives numbers one, too
        value = _array(cx, args, kwargs | with_an_axis, hint)
        if not isinstance(value, Leaf) or not isinstance(value.type, Array):
            return value
        is_ordered = value.type.layout in ((layout,) if value.type.rank > 1 else ("C", "F"))
        return value if is_ordered else call_library(cx, func, [value], {}, hint)


_contiguous(np.ascontiguousarray, "C")
_contiguous(np.asfortranarray, "F")


def copy_in_order(cx: Context, value: Leaf, order: str, hint: Hint) -> Any:
    """A copy of an array in a memory order."""
    assert isinstance(value.type, Array)
    if value.type.rank < 2 or order == "C" or (value.type.layout == "C" and order != "F"):
        return call_library(cx, np.copy, [value], {}, hint)  # printed as a method, whose result is in C order
    return call_library(cx, np.array, [value], {"order": StaticValue(order)}, hint)


@handles(np.copy, takes='a, order="K", subok=False')
def _copy(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return _copy_of(cx, args, kwargs, "K", hint)


@method("array", "copy", takes='order="C"')
def _copy_method(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return _copy_of(cx, args, kwargs, "C", hint)


def _copy_of(cx: Context, args: Args, kwargs: Kwargs, default: str, hint: Hint) -> Any:
    value, given = [*args, kwargs.get("order", StaticValue(default))][:2]
    order = static(cx, given, "'order'")
    if order not in ("C", "F", "A", "K"):
        cx.raise_(ValueError, f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    if isinstance(value, Leaf) and isinstance(value.type, Array):
        return copy_in_order(cx, value, order, hint)
    return call_library(cx, np.copy, [value], {}, hint)


@handles(np.array, takes=PASSED_ON)
def _array(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    copies = known_value(kwargs.get("copy", StaticValue(True)))
    if copies in (False, None) and kwargs.keys() <= {"copy", "dtype", "order", "ndmin", "subok"}:
        ndmin = static(cx, kwargs.pop("ndmin", StaticValue(0)), "'ndmin'")
        value, dtype = [*args, kwargs.get("dtype", StaticValue(None))][:2]
        array = _shared(cx, value, dtype, kwargs.get("order", StaticValue(None)), copies, hint)
        rank = getattr(type_of(array), "rank", ndmin)
        return load_place(cx, Place(array, [StaticValue(None)] * (ndmin - rank)), hint) if rank < ndmin else array
    if copies is True:
        kwargs.pop("copy", None)
    value, *rest = args
    if isinstance(value, Series):
        value = make_list(cx, [value], {}, None)
    if isinstance(value, Leaf) and isinstance(value.type, Array) and not rest and not kwargs:
        return copy_in_order(cx, value, "K", hint)
    rows = run_list_of(cx, value)
    table = None if rows is None else _table(cx, rows.item, iter(rows.columns), hint)
    if table is not None and not rest and not kwargs:
        return table
    named = dict(zip(("dtype",), rest, strict=False)) | kwargs
    if rows is not None and named.keys() == {"dtype"}:
        made = table or call_library(cx, np.array, [value], {}, hint)
        return _shared(cx, made, named["dtype"], StaticValue(None), None, hint)
    return call_library(cx, np.array, [value, *rest], kwargs, hint)


def _table(cx: Context, item: Any, columns: Iterator[Var], hint: Hint, axis: int = 0) -> Any:
    """The array of a growing list of tuples, which is stored as one list per field; None for other lists."""
    content = struct_of(cx, item)
    if content is None or content.kind not in ("tuple", "list"):
        number = type_of(item) is not None
        return call_library(cx, np.array, [Leaf(next(columns))], {}) if axis and number else None
    parts = [_table(cx, child, columns, None, axis + 1) for child in content.children]
    if not parts or any(part is None for part in parts):
        return None
    return call_library(cx, np.stack, [tuple_of(parts), StaticValue(1)], {}, hint)


@handles(np.real, takes="val")
def _real(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return attribute(cx, _number_or_array(cx, args[0]), "real", hint)


@handles(np.imag, takes="val")
def _imag(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return attribute(cx, _number_or_array(cx, args[0]), "imag", hint)


@handles(np.angle, takes=PASSED_ON)
def _angle(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if "deg" in kwargs:
        args, kwargs = [*args, kwargs["deg"]], {name: value for name, value in kwargs.items() if name != "deg"}
    return call_library(cx, np.angle, args, kwargs, hint)


@handles(np.conjugate, takes=PASSED_ON)
def _conjugate(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    value = _number_or_array(cx, args[0])
    if not kwargs and len(args) == 1 and not is_complex(type_of(value)) and cx.rules:
        return value
    return call_library(cx, np.conjugate, [value, *args[1:]], kwargs, hint)


@handles(np.real_if_close, takes="a, tol=100")
def _real_if_close(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    value = args[0] if isinstance(type_of(args[0]), Array) else call_library(cx, np.array, [args[0]], {})
    if is_complex(type_of(value)):
        raise cx.refusal(NotDifferentiable, "the type of np.real_if_close depends on values.", "Use np.real.")
    return _asarray(cx, [value], {}, hint)


def _number_or_array(cx: Context, value: Any) -> Any:
    return value if type_of(value) is not None else call_library(cx, np.array, [value], {})


@handles(np.ix_, takes="*args")
def _open_mesh(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    """Open mesh (`np.ix_`): each index sequence along its own axis."""
    arrays = [_number_or_array(cx, arg) for arg in args]
    if not all(isinstance(type_ := type_of(a), Array) and type_.rank == 1 and "int" in type_.dtype for a in arrays):
        if any(isinstance(array, Leaf) and is_floating(array.type) for array in arrays):
            raise cx.refusal(
                NotDifferentiable, "np.ix_ takes integers and masks here.", "Use np.meshgrid(..., sparse=True)."
            )
        return call_library(cx, np.ix_, args, kwargs, hint)
    parts = []
    for k, array in enumerate(arrays):
        shape = tuple_of(StaticValue(-1 if axis == k else 1) for axis in range(len(arrays)))
        parts.append(call_library(cx, np.reshape, [array, shape], {}))
    return tuple_of(parts)


@handles(np.squeeze, takes=PASSED_ON)
def _squeeze(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    value, *rest = args
    axis = rest[0] if rest else kwargs.get("axis", StaticValue(None))
    if isinstance(value, Leaf) and isinstance(value.type, Scalar) and not value.type.python and not rest and not kwargs:
        return value
    if isinstance(value, Leaf) and isinstance(value.type, Array) and known_value(axis) is None:
        array = cx.symbols.resolve(operand(cx, value))
        shape = known_shape(cx, array)
        if shape is not None and 1 not in shape:
            return value
        if shape is not None:
            kwargs = {"axis": StaticValue(tuple(k for k, size in enumerate(shape) if size == 1))}
            return call_library(cx, np.squeeze, [value], kwargs, hint)
        is_merged = isinstance(array, Var) and cx.symbols.roots_of(array) is None
        if isinstance(array, Var) and (is_merged or array in cx.symbols.definitions):
            _check_axes(cx, array)  # of an argument, the type marks all unit axes
    return call_library(cx, np.squeeze, args, kwargs, hint)


def _check_axes(cx: Context, array: Var) -> None:
    """Check that an array has no axis of size 1 except those that its type marks.

    Where it may have one in the call at hand, the program is specialized for the shapes of that call.
    """
    assert isinstance(array.type, Array)
    sizes = {
        k: Call(intrinsics.dim, (array, Const(k)), (), INT) for k in range(array.type.rank) if not array.type.is_unit(k)
    }
    sample, all_sizes = sampled_shape(cx, array), Tuple(tuple(sizes.values()))
    if (sample is None or any(sample[k] == 1 for k in sizes)) and may_be_fixed(cx, all_sizes):
        reason = "which axes np.squeeze takes away depends on the run."
        raise NeedsConstant(all_sizes, cx.refusal(NotDifferentiable, reason, "Name them: np.squeeze(x, axis=0)."))
    for k, size in sizes.items():
        one = Call(operator.eq, (size, Const(1)), (), BOOL)
        cx.raise_if(one, ValueError, f"np.squeeze: axis {k} has one entry here; name the axes to take away")


@handles(np.broadcast_shapes, takes="*args")
def _broadcast_shapes(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    """`np.broadcast_shapes`: known sizes are folded; the call itself raises for shapes that do not fit."""
    contents = [struct_of(cx, arg) for arg in args]
    shapes = [tuple(map(known_value, content.children)) if content is not None else (UNKNOWN,) for content in contents]
    if not any(UNKNOWN in shape for shape in shapes):
        with contextlib.suppress(ValueError):
            return tuple_of(map(StaticValue, np.broadcast_shapes(*shapes)))
    return call_library(cx, np.broadcast_shapes, args, kwargs, hint)


@handles(np.where, takes=PASSED_ON)
def _where(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if len(args) == 1:
        return call_library(cx, np.nonzero, args, {}, hint)
    return call_library(cx, np.where, args, kwargs, hint)


@handles(math.prod, takes="iterable, /, *, start=1")
def _prod(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    total: Any = kwargs.get("start", StaticValue(1))
    for child in spread(cx, args[0]):
        total = call_value(cx, StaticValue(operator.mul), [total, child], {})
    return total


def _decompose(func: Any, text: Any) -> None:
    @handles(func, takes=PASSED_ON)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        return call_value(cx, StaticValue(text), args, kwargs, hint)


for _func, _text in library_functions.EMATH.items():
    _decompose(_func, _text)


@handles(np.errstate, takes="**kinds")
def _errstate(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    for name, value in kwargs.items():
        action = static(cx, value, f"'{name}'")
        if action == "call" or (action == "raise" and name in ("under", "all")):
            reason = "this np.errstate calls a function, or raises where a number is too small for its type."
            raise cx.refusal(NotDifferentiable, reason, 'Test with np.isfinite, or write divide="raise".')
        if action == "raise":
            begin_errors(cx, FloatingPointError)
    return StaticValue(np.errstate)


@handles(quiet, takes="*args")
def _quiet(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if known_value(args[0]) is not np.errstate:
        raise cx.refusal(UnsupportedSyntax, "this 'with' is not that of np.errstate.", "Put it around the call.")
    return StaticValue(None)


@handles(math.hypot, takes="*coordinates")
def _hypot(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if len(args) == 2:
        return emit_call(cx, math.hypot, args, hint=hint)
    origin = tuple_of([StaticValue(0.0)] * len(args))
    return call_value(cx, StaticValue(math.dist), [tuple_of(args), origin], {}, hint)


# ---- gradient modifiers --------------------------------------------------------------------------------------------


def _on_leaves(func: Any) -> None:
    @handles(func, takes=inspect.signature(func))
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        value, *options = [*args, *kwargs.values()]
        if func is print_gradient:
            options = [StaticValue(static(cx, option, "the label of tg.print_gradient")) for option in options]
        return changed(cx, value, options, hint)

    def changed(cx: Context, value: Any, options: list[Any], hint: Hint) -> Any:
        if run_list_of(cx, value) is not None:
            raise cx.refusal(
                NotDifferentiable, f"tg.{func.__name__} gets a list that grows.", "Call it on each of its items."
            )
        content = struct_of(cx, value)
        if content is not None:
            children = tuple(changed(cx, child, options, None) for child in content.children)
            made = dataclasses.replace(content, children=children, whole=None)
            return made if made.kind == "tuple" else cx.new_cell(made)
        if isinstance(value, Leaf) and is_floating(value.type):
            return emit_call(cx, func, [value, *options], {}, hint)
        return value


for _func in SURGERY:
    _on_leaves(_func)
