"""Methods of arrays and scalars."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.handlers import PASSED_ON, handles, method
from tapegen.frontend.calls.library_calls import call_library
from tapegen.frontend.calls.resolve import call_value
from tapegen.frontend.expressions.subscript_stores import store_place
from tapegen.frontend.expressions.subscripts import Place, load_place
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.templates import ufunc_methods
from tapegen.frontend.values.complex_parts import PARTS
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import static, struct_of, type_of
from tapegen.frontend.values.narrowing import note_view_of_number
from tapegen.frontend.values.pytree import Leaf, StaticValue, tuple_of
from tapegen.ir import intrinsics
from tapegen.ir.types import Array, Scalar, is_complex, is_floating

THROUGH_FUNCTIONS: dict[str, Any] = {
    name: getattr(np, name)
    for name in (
        "sum mean std var prod min max argmin argmax argsort argpartition cumsum cumprod any all trace squeeze clip "
        "round diagonal dot repeat take nonzero ptp searchsorted ravel swapaxes choose put"
    ).split()
    if hasattr(np, name)
}


_PARAMETERS = {"choose": 'choices, *, out=None, mode="raise"', "clip": "min=None, max=None, out=None"}
"""Methods whose positional arguments differ from those of the function: `x.choose(a, b)` has two choices."""

_NAMES = {"clip": ("min", "max", "out")}
"""Methods whose positional arguments are those of the function under other names."""


def _through_function(name: str, func: Any) -> None:
    names = _NAMES.get(name, ())

    @method("array", name, takes=_PARAMETERS.get(name, PASSED_ON))
    def call(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
        if names:
            args, kwargs = args[:1], {**dict(zip(names, args[1:], strict=False)), **kwargs}
        return call_value(cx, StaticValue(func), args, kwargs, hint)


for _name, _func in THROUGH_FUNCTIONS.items():
    _through_function(_name, _func)


def _flat_args(args: Sequence[Any]) -> Any:
    """`x.reshape(2, 3)` and `x.reshape((2, 3))`."""
    return args[0] if len(args) == 1 else tuple_of(args)


@method("array", "reshape", takes=PASSED_ON)
def _reshape(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return call_library(cx, np.reshape, [args[0], _flat_args(args[1:])], kwargs, hint)


def transposed(cx: Context, array: Any, hint: str | None = None) -> Any:
    """`array.T`."""
    return emit_call(cx, intrinsics.transpose_view, (array,), hint=hint) if array.type.rank > 1 else array


@method("array", "transpose", takes="*axes")
def _transpose(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, *axes = args
    if not axes:
        return transposed(cx, owner, hint)
    return call_library(cx, np.transpose, [owner, _flat_args(axes)], kwargs, hint)


@method("array", "astype", takes="dtype, *, copy=True")
def _astype(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    wanted = _wanted(cx, args, kwargs)
    same = wanted == np.dtype(args[0].type.dtype)
    if same and not static(cx, kwargs.get("copy", StaticValue(True)), "'copy'"):
        return args[0]
    return call_library(cx, np.astype, [args[0], StaticValue(wanted.type)], {}, hint)


@handles(np.astype, takes="x, dtype, /, *, copy=True")
def _astype_function(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    copies = static(cx, kwargs.pop("copy", StaticValue(True)), "'copy'")
    if not copies and isinstance(args[0], Leaf) and isinstance(args[0].type, Array):
        return _astype(cx, args, {**kwargs, "copy": StaticValue(False)}, hint)
    return call_library(cx, np.astype, args, kwargs, hint)


@method("number", "astype", takes="dtype, *, copy=True")
def _number_astype(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    made = call_library(cx, _wanted(cx, args, kwargs).type, args[:1], {}, hint)
    if not static(cx, kwargs.get("copy", StaticValue(True)), "'copy'"):
        note_view_of_number(cx, made, args[0])
    return made


def _wanted(cx: Context, args: Sequence[Any], kwargs: dict[str, Any]) -> np.dtype[Any]:
    """The requested dtype."""
    given = [*args[1:], *(value for name, value in kwargs.items() if name == "dtype")]
    if len(given) != 1:
        cx.raise_(TypeError, "astype() takes one dtype")
    return np.dtype(static(cx, given[0], "the dtype"))


@method("array", "flatten", takes='order="C"')
def _flatten(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    flat = call_library(cx, np.ravel, args, kwargs)
    return call_library(cx, np.copy, [flat], {}, hint)


@method("array", "fill", takes="value")
def _fill(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    if getattr(type_of(args[1]), "rank", 0) > 0:
        cx.raise_(ValueError, "setting an array element with a sequence.")
    store_place(cx, Place(args[0], []), args[1])
    return StaticValue(None)


@method("array", "sort", takes=PASSED_ON)
def _sort(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    ordered = call_library(cx, np.sort, args, kwargs)
    store_place(cx, Place(args[0], []), ordered)
    return StaticValue(None)


@method("array", "compress", takes="condition, axis=None")
def _compress(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, condition, *axis = args
    return call_value(cx, StaticValue(np.compress), [condition, owner, *axis], kwargs, hint)


@method("array", "partition", takes=PASSED_ON)
def _partition(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    store_place(cx, Place(args[0], []), call_library(cx, np.partition, args, kwargs))
    return StaticValue(None)


@method("array", "view", takes="*args, **kwargs")
def _view(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    if len(args) > 1 or kwargs:
        raise cx.refusal(
            NotDifferentiable, "'view' takes the bytes of numbers for others, which has no derivative.", "Use astype."
        )
    return args[0]


@method("array", "tolist", takes="")
def _tolist(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    type_ = type_of(args[0])
    if not isinstance(type_, Array) or type_.rank != 1 or type_.dtype != "float64":
        raise cx.refusal(NotDifferentiable, "'tolist' is for vectors of float64 here.", "Index the array.")
    return cx.call(cx, StaticValue(ufunc_methods.listed), args, {})


@method("array", "item", takes="*args")
def _item(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, *index = args
    if len(index) == 1:
        content = struct_of(cx, index[0])
        index = list(content.children) if content is not None else index
    rank = owner.type.rank
    if not index:
        index = [StaticValue(0)] * rank
    if len(index) == 1 and rank > 1:  # an index into the flattened array
        owner, rank = call_library(cx, np.ravel, [owner], {}), 1
    if len(index) != rank:
        raise cx.refusal(
            NotDifferentiable, f"item() takes one position or {rank} of them, not {len(index)}.", "Index the array."
        )
    place = Place(owner, index)
    element = load_place(cx, place)
    return call_value(cx, StaticValue(_plain_class(owner.type)), [element], {}, hint)


@method("number", "item", takes="")
def _number_item(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    type_ = type_of(args[0])
    assert isinstance(type_, Scalar)
    return call_value(cx, StaticValue(_plain_class(type_)), args[:1], {}, hint)


def _plain_class(type_: Array | Scalar) -> type:
    """The Python scalar class of an element."""
    return complex if is_complex(type_) else float if is_floating(type_) else bool if type_.dtype == "bool" else int


def _conjugated(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return emit_call(cx, np.conjugate, args, hint=hint) if is_complex(args[0].type) else args[0]  # the array itself


method("array", "conj", takes="")(_conjugated)
method("array", "conjugate", takes="")(_conjugated)


@method("number", "conj", takes="")
@method("number", "conjugate", takes="")
def _conjugate(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    type_ = type_of(args[0])
    if not is_complex(type_):
        return args[0]
    assert isinstance(type_, Scalar)
    if not type_.python:
        return emit_call(cx, np.conjugate, args, hint=hint)
    real, imag = (emit_call(cx, part, args) for part in PARTS.values())
    return emit_call(cx, complex, (real, emit_call(cx, operator.neg, (imag,))), hint=hint)


@method("number", "copy", takes="")
def _itself(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return args[0]


@method("number", "is_integer", takes="")
def _is_integer(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    whole = emit_call(cx, operator.eq, (emit_call(cx, np.floor, args), args[0]))
    return emit_call(cx, operator.and_, (whole, emit_call(cx, np.isfinite, args)))
