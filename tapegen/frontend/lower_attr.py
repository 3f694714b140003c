"""Attributes and methods."""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Sequence
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

import gast
import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend import builtin_texts, ufunc_texts
from tapegen.frontend.lower_call import call_value, has_method, method
from tapegen.frontend.lower_capture import (
    capture,
    captured_child,
    class_member,
    has_attribute,
    is_fixed,
    is_method,
    watch,
)
from tapegen.frontend.lower_choice import split
from tapegen.frontend.lower_context import Context
from tapegen.frontend.lower_derivative import bound_derivative
from tapegen.frontend.lower_draws import draw_method
from tapegen.frontend.lower_emit import emit_call
from tapegen.frontend.lower_expr import evaluate, evaluates, spread
from tapegen.frontend.lower_index import Place, load_place, store_place
from tapegen.frontend.lower_list import append, pop
from tapegen.frontend.lower_numpy import call_library
from tapegen.frontend.lower_shapes import extent, known_size
from tapegen.frontend.lower_state import Bound, Captured, Choice, Method, Ref, Super, known_value
from tapegen.frontend.lower_values import describe, expr_of, operand, run_list_of, static, struct_of, type_of
from tapegen.frontend.parse import MISSING
from tapegen.frontend.structure import UNKNOWN, Leaf, StaticValue, Struct, children_of, dict_of, list_of, tuple_of
from tapegen.ir import ops
from tapegen.ir.nodes import Call
from tapegen.ir.types import INT, Array, RandomGenerator, Scalar, TupleOf, is_complex, is_floating, python_class


@evaluates(gast.Attribute)
def _attribute(cx: Context, node: gast.Attribute, hint: str | None) -> Any:
    return attribute(cx, evaluate(cx, node.value), node.attr, hint)


_PLAIN_DESCRIPTORS = (MemberDescriptorType, GetSetDescriptorType)  # __slots__, __dict__


def attribute(cx: Context, owner: Any, name: str, hint: str | None = None) -> Any:
    """`owner.name`."""
    if isinstance(owner, Choice):
        return split(cx, (owner,), lambda part: attribute(cx, part, name, hint), hint)
    if isinstance(owner, StaticValue) and (type_of(owner) is None or isinstance(owner.value, enum.Enum)):
        return _static_attribute(cx, owner.value, name)
    if isinstance(owner, Captured):
        return _captured_attribute(cx, owner, name)
    if isinstance(owner, Super):
        return _class_attribute(cx, owner.owner, owner.cls, name, owner.after)
    if isinstance(owner, Bound):
        return _method_attribute(cx, owner, name)
    if isinstance(type_of(owner), RandomGenerator):
        return Bound(draw_method(cx, owner, name), (owner,))
    if type_of(owner) is not None:
        return _number_attribute(cx, owner, name, hint)
    if run_list_of(cx, owner) is not None:
        return Bound(StaticValue(Method("list", name)), (owner,))
    content = struct_of(cx, owner)
    if content is None:
        raise cx.refusal(
            NotDifferentiable, f"the attribute '{name}' of {describe(cx, owner)} is not supported.", "Leave it out."
        )
    if content.kind == "object" or (content.kind == "tuple" and hasattr(content.cls, "_fields")):
        if name in content.keys and (content.kind == "tuple" or not _class_comes_first(cx, content.cls, name)):
            return content.get(name)
        if content.kind == "tuple" and has_method("tuple", name):
            return Bound(StaticValue(Method("tuple", name)), (owner,))
        return _class_attribute(cx, owner, content.cls, name)
    if not has_method(content.kind, name):
        if not hasattr(content.cls, name):
            cx.raise_(AttributeError, f"'{content.cls.__name__}' object has no attribute '{name}'")
        raise cx.refusal(
            NotDifferentiable, f"the method '{name}' of a {content.kind} is not supported.", "Write it another way."
        )
    return Bound(StaticValue(Method(content.kind, name)), (owner,))


def _class_comes_first(cx: Context, cls: type, name: str) -> bool:
    """Whether the class of an object decides what an attribute is, although the object has it: a property."""
    kind = type(class_member(cx, cls, name))
    return hasattr(kind, "__set__") and kind not in _PLAIN_DESCRIPTORS


def _class_attribute(cx: Context, owner: Any, cls: type, name: str, after: type | None = None) -> Any:
    """An attribute that the class of an object holds: a method, a property, a constant."""
    found = class_member(cx, cls, name, after)
    if found is MISSING:
        kind = cls.__name__ if after is None else "super"
        cx.raise_(AttributeError, f"'{kind}' object has no attribute '{name}'")
    if isinstance(found, property) and is_method(found.fget):
        return call_value(cx, StaticValue(found.fget), [owner], {})
    if isinstance(found, functools.cached_property):
        return call_value(cx, StaticValue(found.func), [owner], {})
    if isinstance(found, staticmethod):
        return StaticValue(found.__func__)
    if isinstance(found, classmethod):
        return Bound(StaticValue(found.__func__), (StaticValue(cls),))
    if is_method(found) or found is object.__init__:
        return Bound(StaticValue(found), (owner,))
    if hasattr(type(found), "__get__") or (callable(found) and not isinstance(found, type)):
        raise cx.refusal(
            NotDifferentiable, f"'{cls.__name__}.{name}' is not a plain method.", "Write it as a function."
        )
    return capture(cx, found, lambda: getattr(cls, name), name, (id(cls), name))


def _method_attribute(cx: Context, method: Bound, name: str) -> Any:
    """An attribute of a method: `self.loss.grad` of a differentiable one."""
    found = bound_derivative(method.func, method.args, name)
    if found is None:
        raise cx.refusal(NotDifferentiable, f"the attribute '{name}' of a method is not supported.", "Leave it out.")
    return found


def _captured_attribute(cx: Context, owner: Captured, name: str) -> Any:
    value = owner.value
    struct = children_of(value)
    assert struct is not None
    if struct.kind == "object" or hasattr(struct.cls, "_fields"):
        if name in struct.keys and (struct.kind == "tuple" or not _class_comes_first(cx, struct.cls, name)):
            return captured_child(cx, owner, name, getattr(value, name), operator.attrgetter(name))
        watch(cx, (owner.path, "own", name), lambda: name in getattr(owner.getter(), "__dict__", ()))
        return _class_attribute(cx, owner, struct.cls, name)
    if has_method(struct.kind, name):
        return Bound(StaticValue(Method(struct.kind, name)), (owner,))
    raise cx.refusal(NotDifferentiable, f"'{owner.name}.{name}' is not supported.", "Pass it as an argument.")


def _static_attribute(cx: Context, value: Any, name: str) -> Any:
    try:
        found = getattr(value, name)
    except AttributeError as error:
        has_attribute(cx, value, name, lambda: value, id(value))
        cx.raise_(AttributeError, str(error))
    if is_fixed(value):
        return StaticValue(found)
    return capture(cx, found, lambda: getattr(value, name), name, (id(value), name))


# ---- numbers and arrays --------------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Any] = {
    name: getattr(np, name)
    for name in (
        "sum mean std var prod min max argmin argmax argsort argpartition cumsum cumprod any all trace squeeze clip "
        "round conjugate diagonal dot repeat take nonzero ptp searchsorted copy ravel swapaxes choose put"
    ).split()
    if hasattr(np, name)
} | {"conj": np.conjugate}


_PARTS = {"real": ops.real_part, "imag": ops.imaginary_part}
_OF_MEMORY = {
    "flat": "'flat' of an array that may not be contiguous is not followed.",
    "strides": "'strides' say how an array lies in memory, which derivatives do not follow.",
    "base": "'base' says who owns the memory of an array, which derivatives do not follow.",
    "resize": "'resize' changes the size of an array in place, which derivatives do not follow.",
}


def _number_attribute(cx: Context, owner: Any, name: str, hint: str | None) -> Any:
    type_ = type_of(owner)
    if isinstance(type_, Array):
        return _array_attribute(cx, owner, type_, name, hint)
    assert isinstance(type_, Scalar)
    match name:
        case "real" | "imag" if is_complex(type_):
            return emit_call(cx, _PARTS[name], (owner,), hint=hint)
        case "real":
            return owner
        case "imag":
            return emit_call(cx, operator.mul, (owner, StaticValue(0)))
        case "is_integer":
            return Bound(StaticValue(Method("number", name)), (owner,))
    if type_.python:
        cls = python_class(type_)
        if name in ("conjugate", "bit_length", "item") and hasattr(cls, name):
            return Bound(StaticValue(Method("number", name)), (owner,))
        cx.raise_(AttributeError, f"'{cls.__name__}' object has no attribute '{name}'")
    match name:
        case "T":
            return owner
        case "shape":
            return tuple_of(())
        case "ndim":
            return StaticValue(0)
        case "size":
            return StaticValue(1)
        case "dtype":
            return StaticValue(np.dtype(type_.dtype))
    if name in _FUNCTIONS or has_method("number", name):
        kind = "array" if name in _FUNCTIONS else "number"
        return Bound(StaticValue(Method(kind, name)), (owner,))
    raise cx.refusal(
        NotDifferentiable, f"the attribute '{name}' of a NumPy number is not supported.", "Use a function of NumPy."
    )


def _array_attribute(cx: Context, owner: Any, type_: Array, name: str, hint: str | None) -> Any:
    match name:
        case "shape":
            return shape_of(cx, owner)
        case "ndim":
            return StaticValue(type_.rank)
        case "size":
            return Leaf(expr_of(cx, emit_call(cx, np.size, (owner,))), known_size(cx, operand(cx, owner)))
        case "T":
            return emit_call(cx, ops.transpose_view, (owner,), hint=hint) if type_.rank > 1 else owner
        case "mT":
            return call_library(cx, np.matrix_transpose, [owner], {}, hint)
        case "dtype":
            return StaticValue(np.dtype(type_.dtype))
        case "nbytes":
            size = attribute(cx, owner, "size")
            return emit_call(cx, operator.mul, (size, StaticValue(np.dtype(type_.dtype).itemsize)))
        case "flat" if type_.layout == "C":
            return call_library(cx, np.ravel, [owner], {}, hint)
        case "flat" | "strides" | "base" | "resize":
            raise cx.refusal(NotDifferentiable, _OF_MEMORY[name], "Use np.ravel, np.reshape, or indices.")
        case "itemsize":
            return StaticValue(np.dtype(type_.dtype).itemsize)
        case "real" | "imag" if is_complex(type_):
            return emit_call(cx, _PARTS[name], (owner,), hint=hint)
        case "real":
            return owner
        case "imag":
            return emit_call(cx, np.zeros_like, (owner,), hint=hint)
    if name in _FUNCTIONS or has_method("array", name):
        return Bound(StaticValue(Method("array", name)), (owner,))
    raise cx.refusal(
        NotDifferentiable, f"the attribute '{name}' of an array is not supported.", "Use a function of NumPy."
    )


def shape_of(cx: Context, owner: Any) -> Struct:
    """`array.shape`."""
    array = operand(cx, owner)
    assert isinstance(array.type, Array)
    type_ = array.type
    dims = (extent(cx, array, k) for k in range(type_.rank))
    return tuple_of(dims, whole=Call(ops.shape, (array,), (), TupleOf((INT,) * type_.rank)) if type_.rank else None)


def _through_function(name: str, func: Any) -> None:
    @method("array", name)
    def call(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
        return call_value(cx, StaticValue(func), args, kwargs, hint)


for _name, _func in _FUNCTIONS.items():
    _through_function(_name, _func)


def _flat_args(args: Sequence[Any], cx: Context) -> Any:
    """`x.reshape(2, 3)` and `x.reshape((2, 3))`."""
    return args[0] if len(args) == 1 else tuple_of(args)


@method("array", "reshape")
def _reshape(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return call_library(cx, np.reshape, [args[0], _flat_args(args[1:], cx)], kwargs, hint)


@method("array", "transpose")
def _transpose(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, *axes = args
    if not axes:
        return attribute(cx, owner, "T", hint)
    return call_library(cx, np.transpose, [owner, _flat_args(axes, cx)], kwargs, hint)


@method("array", "astype")
def _astype(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    kwargs.pop("copy", None)
    dtype = args[1] if len(args) > 1 else kwargs.pop("dtype")
    known = np.dtype(static(cx, dtype, "the dtype")).type
    return call_library(cx, np.astype, [args[0], StaticValue(known)], {}, hint)


@method("number", "astype")
def _number_astype(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    known = np.dtype(static(cx, args[1], "the dtype")).type
    return call_library(cx, known, [args[0]], {}, hint)


@method("array", "flatten")
def _flatten(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    flat = call_library(cx, np.ravel, args, kwargs)
    return call_library(cx, np.copy, [flat], {}, hint)


@method("array", "fill")
def _fill(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    store_place(cx, Place(args[0], []), args[1])
    return StaticValue(None)


@method("array", "sort")
def _sort(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    ordered = call_library(cx, np.sort, args, kwargs)
    store_place(cx, Place(args[0], []), ordered)
    return StaticValue(None)


@method("array", "compress")
def _compress(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, condition, *axis = args
    return call_value(cx, StaticValue(np.compress), [condition, owner, *axis], kwargs, hint)


@method("array", "partition")
def _partition(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    store_place(cx, Place(args[0], []), call_library(cx, np.partition, args, kwargs))
    return StaticValue(None)


@method("array", "view")
def _view(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    if len(args) > 1 or kwargs:
        raise cx.refusal(
            NotDifferentiable, "'view' takes the bytes of numbers for others, which has no derivative.", "Use astype."
        )
    return args[0]


@method("array", "tolist")
def _tolist(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    type_ = type_of(args[0])
    if not isinstance(type_, Array) or type_.rank != 1 or type_.dtype != "float64":
        raise cx.refusal(NotDifferentiable, "'tolist' is for vectors of float64 here.", "Index the array.")
    return cx.call(cx, StaticValue(ufunc_texts.listed), args, {})


@method("array", "item")
def _item(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, *index = args
    if len(index) == 1:
        content = struct_of(cx, index[0])
        index = list(content.children) if content is not None else index
    rank = owner.type.rank
    if not index:
        index = [StaticValue(0)] * rank
    if len(index) == 1 and rank > 1:  # counted through all elements
        owner, rank = call_library(cx, np.ravel, [owner], {}), 1
    if len(index) != rank:
        raise cx.refusal(
            NotDifferentiable, f"item() takes one position or {rank} of them, not {len(index)}.", "Index the array."
        )
    place = Place(owner, index)
    element = load_place(cx, place)
    return call_value(cx, StaticValue(_plain_class(owner.type)), [element], {}, hint)


@method("number", "item")
def _number_item(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    type_ = type_of(args[0])
    assert isinstance(type_, Scalar)
    return call_value(cx, StaticValue(_plain_class(type_)), args[:1], {}, hint)


def _plain_class(type_: Array | Scalar) -> type:
    """The class of Python's numbers for an element."""
    return complex if is_complex(type_) else float if is_floating(type_) else bool if type_.dtype == "bool" else int


@method("number", "conjugate")
def _conjugate(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    type_ = type_of(args[0])
    if not is_complex(type_):
        return args[0]
    assert isinstance(type_, Scalar)
    if not type_.python:
        return emit_call(cx, np.conjugate, args, hint=hint)
    real, imag = (emit_call(cx, part, args) for part in _PARTS.values())
    return emit_call(cx, complex, (real, emit_call(cx, operator.neg, (imag,))), hint=hint)


@method("number", "copy")
def _itself(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return args[0]


@method("number", "is_integer")
def _is_integer(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return emit_call(cx, operator.eq, (emit_call(cx, np.floor, args), args[0]))


# ---- lists, tuples and dicts ---------------------------------------------------------------------------------------


@method("list", "append")
def _append(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, value = args
    append(cx, _own(cx, owner), value)
    return StaticValue(None)


def _own(cx: Context, owner: Any) -> Ref:
    if isinstance(owner, Ref):
        return owner
    raise cx.refusal(
        NotDifferentiable, f"this changes {describe(cx, owner)}, which is not part of the result.", "Build a new list."
    )


@method("list", "extend")
def _extend(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, values = args
    is_array = isinstance(values, Leaf) and isinstance(values.type, Array)
    if is_array or run_list_of(cx, values) is not None:
        cx.call(cx, StaticValue(builtin_texts.extended), (_own(cx, owner), values), {})
        return StaticValue(None)
    for value in spread(cx, values):
        append(cx, _own(cx, owner), value)
    return StaticValue(None)


@method("list", "pop")
def _pop(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, *position = args
    if position and run_list_of(cx, owner) is not None and known_value(position[0]) == 0:
        return cx.call(cx, StaticValue(builtin_texts.taken_first), (_own(cx, owner),), {})
    return pop(cx, _own(cx, owner), *position)


@method("list", "sort")
def _sort_list(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    content = struct_of(cx, _own(cx, args[0]))
    key = kwargs.get("key", StaticValue(None))
    reverse = bool(static(cx, kwargs.get("reverse", StaticValue(False)), "'reverse'"))
    if content is not None and known_value(key) is None:
        known: list[Any] = [known_value(item) for item in content.children]
        if UNKNOWN not in known:
            cx.set_cell(args[0], list_of(map(StaticValue, sorted(known, reverse=reverse))))
            return StaticValue(None)
    cx.call(cx, StaticValue(builtin_texts.put_in_order), (args[0], key, StaticValue(reverse)), {})
    return StaticValue(None)


@method("list", "insert")
def _insert(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, position, value = args
    children = list(_children(cx, owner, "insert"))
    children.insert(static(cx, position, "the position"), value)
    cx.set_cell(_own(cx, owner), list_of(children))
    return StaticValue(None)


@method("list", "reverse")
def _reverse(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    cx.set_cell(_own(cx, args[0]), list_of(_children(cx, args[0], "reverse")[::-1]))
    return StaticValue(None)


@method("list", "clear")
def _clear(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    _children(cx, args[0], "clear")
    cx.set_cell(_own(cx, args[0]), list_of(()))
    return StaticValue(None)


@method("list", "copy")
def _copy(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return cx.call(cx, StaticValue(list), (args[0],), {})


def _children(cx: Context, owner: Any, name: str) -> tuple[Any, ...]:
    content = struct_of(cx, owner)
    if content is None:
        raise cx.refusal(NotDifferentiable, f"'{name}' of a list that grows is not supported.", "Use append and pop.")
    return content.children


@method("list", "index")
@method("tuple", "index")
def _index(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    children = _children(cx, args[0], "index")
    known = [known_value(child) for child in (*children, args[1])]
    if UNKNOWN in known:
        raise cx.refusal(NotDifferentiable, "'index' among computed values is not supported.", "Write a loop.")
    if known[-1] not in known[:-1]:
        cx.raise_(ValueError, "the value is not in the list")
    return StaticValue(known.index(known[-1]))


@method("tuple", "_replace")
def _replace(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    content = struct_of(cx, args[0])
    assert content is not None
    for name, value in kwargs.items():
        if name not in content.keys:
            cx.raise_(ValueError, f"Got unexpected field names: ['{name}']")
        content = content.with_child(name, value)
    return content


@method("tuple", "_asdict")
def _asdict(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    content = struct_of(cx, args[0])
    assert content is not None
    return cx.new_cell(dict_of(zip(content.keys, content.children, strict=True)))


def _dict(cx: Context, owner: Any) -> Struct:
    content = struct_of(cx, owner)
    assert content is not None
    return content


@method("dict", "keys")
def _keys(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return tuple_of(map(StaticValue, _dict(cx, args[0]).keys))


@method("dict", "values")
def _values(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return tuple_of(_dict(cx, args[0]).children)


@method("dict", "items")
def _items(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    content = _dict(cx, args[0])
    return tuple_of(
        tuple_of((StaticValue(key), child)) for key, child in zip(content.keys, content.children, strict=True)
    )


@method("dict", "get")
def _get(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, key, *default = args
    content, known = _dict(cx, owner), static(cx, key, "a key of a dict")
    if known in content.keys:
        return content.get(known)
    return default[0] if default else StaticValue(None)


@method("dict", "copy")
def _copy_dict(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return cx.new_cell(_dict(cx, args[0]))


@method("dict", "update")
def _update(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, *others = args
    content = _dict(cx, owner)
    for other in others:
        given = _dict(cx, other)
        for key, child in zip(given.keys, given.children, strict=True):
            content = content.with_child(key, child)
    for name, value in kwargs.items():
        content = content.with_child(name, value)
    cx.set_cell(_own(cx, owner), content)
    return StaticValue(None)


@method("dict", "setdefault")
def _setdefault(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, key, value = args
    content, known = _dict(cx, owner), static(cx, key, "a key of a dict")
    if known not in content.keys:
        content = content.with_child(known, value)
        cx.set_cell(_own(cx, owner), content)
    return content.get(known)


@method("dict", "pop")
def _pop_key(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, key, *default = args
    content, known = _dict(cx, owner), static(cx, key, "a key of a dict")
    if known not in content.keys:
        if default:
            return default[0]
        cx.raise_(KeyError, str(known))
    rest = [(k, child) for k, child in zip(content.keys, content.children, strict=True) if k != known]
    cx.set_cell(_own(cx, owner), dict_of(rest, content.cls))
    return content.get(known)
