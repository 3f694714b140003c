"""Attribute access: of objects and their classes, of modules, of scalars and arrays."""

from __future__ import annotations

import enum
import functools
import operator
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

import gast
import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.batches import Batched
from tapegen.frontend.calls.handlers import has_method
from tapegen.frontend.calls.library_calls import call_library
from tapegen.frontend.calls.nested_derivatives import bound_derivative
from tapegen.frontend.calls.resolve import call_value
from tapegen.frontend.expressions.expressions import evaluate, evaluates
from tapegen.frontend.expressions.unions import split
from tapegen.frontend.library.array_methods import THROUGH_FUNCTIONS, transposed
from tapegen.frontend.library.random import draw_method
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.mutation.caller_objects import is_tail
from tapegen.frontend.source.parse import MISSING
from tapegen.frontend.values.captures import (
    capture,
    captured_child,
    class_member,
    has_attribute,
    is_fixed,
    is_method,
    note_library,
    note_read,
    special_method,
    watch,
)
from tapegen.frontend.values.complex_parts import PARTS, part_of
from tapegen.frontend.values.constant_shapes import extent, known_size
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.library_objects import attribute_of_distribution
from tapegen.frontend.values.materialize import (
    array_operand,
    describe,
    expr_of,
    operand,
    refuse_text,
    run_list_of,
    struct_of,
    type_of,
)
from tapegen.frontend.values.narrowing import may_be_array
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct, children_of, tuple_of
from tapegen.frontend.values.state import Bound, Captured, Choice, Method, Ref, Super, View
from tapegen.frontend.values.type_sets import kinds_of
from tapegen.ir import intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Expr, Load, Slice, Var
from tapegen.ir.types import INT, Array, RandomGenerator, Scalar, TupleOf, is_complex, python_class


@evaluates(gast.Attribute)
def _attribute(cx: Context, node: gast.Attribute, hint: str | None) -> Any:
    return attribute(cx, evaluate(cx, node.value), node.attr, hint)


_PLAIN_DESCRIPTORS = (MemberDescriptorType, GetSetDescriptorType)  # __slots__, __dict__


def attribute(cx: Context, owner: Any, name: str, hint: str | None = None) -> Any:
    """`owner.name`."""
    if isinstance(owner, Choice):
        return split(cx, (owner,), lambda part: attribute(cx, part, name, hint), hint)
    refuse_text(cx, owner)
    if (found := attribute_of_distribution(cx, owner, name)) is not None:
        return found
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
    if is_tail(cx, owner) and name in ("append", "extend"):
        return Bound(StaticValue(Method("list", name)), (owner,))
    if run_list_of(cx, owner) is not None:
        return Bound(StaticValue(Method("list", name)), (owner,))
    content = struct_of(cx, owner) if not isinstance(owner, View) else None
    if content is None:
        raise cx.refusal(
            NotDifferentiable, f"the attribute '{name}' of {describe(cx, owner)} is not supported.", "Leave it out."
        )
    if content.kind == "object" or (content.kind == "tuple" and hasattr(content.cls, "_fields")):
        _check_default_lookup(cx, content.cls)
        if name in content.keys and (content.kind == "tuple" or not _class_comes_first(cx, content.cls, name)):
            return content.get(name)
        if content.kind == "tuple" and has_method("tuple", name):
            return Bound(StaticValue(Method("tuple", name)), (owner,))
        if name == "__class__":
            return StaticValue(content.cls)
        return _class_attribute(cx, owner, content.cls, name)
    if not has_method(content.kind, name):
        if not hasattr(content.cls, name):
            cx.raise_(AttributeError, f"'{content.cls.__name__}' object has no attribute '{name}'")
        raise cx.refusal(
            NotDifferentiable, f"the method '{name}' of a {content.kind} is not supported.", "Write it another way."
        )
    return Bound(StaticValue(Method(content.kind, name)), (owner,))


def _check_default_lookup(cx: Context, cls: type) -> None:
    if isinstance(class_member(cx, cls, "__getattribute__"), FunctionType):
        raise cx.refusal(
            NotDifferentiable,
            f"'{cls.__name__}' defines its own '__getattribute__'.",
            "Use attributes and properties.",
        )


def _class_comes_first(cx: Context, cls: type, name: str) -> bool:
    """Whether an attribute of the class takes precedence over that of the object: a data descriptor (property)."""
    kind = type(class_member(cx, cls, name))
    return hasattr(kind, "__set__") and kind not in _PLAIN_DESCRIPTORS


def _class_attribute(cx: Context, owner: Any, cls: type, name: str, after: type | None = None) -> Any:
    """An attribute of the class of an object: a method, a property, a constant."""
    found = class_member(cx, cls, name, after)
    asked = special_method(cx, cls, "__getattr__") if found is MISSING and after is None else None
    if asked is not None:
        return call_value(cx, StaticValue(asked), [owner, StaticValue(name)], {})
    if found is MISSING and (stands_for := getattr(cls, "__tapegen_inside__", None)) is not None:
        raise cx.refusal(
            NotDifferentiable,
            f"the attribute '{name}' of {stands_for} is not followed.",
            getattr(
                cls, "__tapegen_advice__", "Write it with calls of the object, or with functions that have a rule."
            ),
        )
    if found is MISSING:
        kind = cls.__name__ if after is None else "super"
        cx.raise_(AttributeError, f"'{kind}' object has no attribute '{name}'")
    if isinstance(found, property) and is_method(found.fget):
        return call_value(cx, StaticValue(found.fget), [owner], {})
    if isinstance(found, functools.cached_property):
        value = call_value(cx, StaticValue(found.func), [owner], {})
        content = struct_of(cx, owner)
        if (
            isinstance(owner, Ref)
            and content is not None
            and cx.may_change(owner)
            and owner.cell not in cx.caller.owned
        ):
            cx.set_cell(owner, content.with_child(name, value))
        return value
    if isinstance(found, staticmethod):
        return StaticValue(found.__func__)
    if isinstance(found, classmethod):
        return Bound(StaticValue(found.__func__), (StaticValue(cls),))
    if is_method(found) or found is object.__init__:
        return Bound(StaticValue(found), (owner,))
    if name == "__dict__":
        raise cx.refusal(
            NotDifferentiable,
            "the '__dict__' of an object is not followed.",
            "Set the attributes by name: 'for name, value in given.items(): setattr(self, name, value)'.",
        )
    if hasattr(type(found), "__get__") or (callable(found) and not isinstance(found, type)):
        raise cx.refusal(
            NotDifferentiable, f"'{cls.__name__}.{name}' is not a plain method.", "Write it as a function."
        )
    return capture(cx, found, lambda: getattr(cls, name), name, _path(cls, name))


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
    _check_default_lookup(cx, struct.cls)
    if struct.kind == "object" or hasattr(struct.cls, "_fields"):
        if name in struct.keys and (struct.kind == "tuple" or not _class_comes_first(cx, struct.cls, name)):
            return captured_child(cx, owner, name, getattr(value, name), operator.attrgetter(name))
        note_read(cx, owner, name)
        watch(cx, (owner.path, "own", name), lambda: name in getattr(owner.getter(), "__dict__", ()))
        return _class_attribute(cx, owner, struct.cls, name)
    if has_method(struct.kind, name):
        return Bound(StaticValue(Method(struct.kind, name)), (owner,))
    if hasattr(struct.cls, "n_sequence_fields") and hasattr(value, name):  # `sys.float_info`
        return captured_child(cx, owner, name, getattr(value, name), operator.attrgetter(name))
    raise cx.refusal(NotDifferentiable, f"'{owner.name}.{name}' is not supported.", "Pass it as an argument.")


def _static_attribute(cx: Context, value: Any, name: str) -> Any:
    if isinstance(value, Batched):
        return _batch_attribute(cx, value, name)
    try:
        found = getattr(value, name)
    except AttributeError as error:
        has_attribute(cx, value, name, lambda: value, id(value))
        cx.raise_(AttributeError, str(error))
    if is_fixed(value):
        if isinstance(value, ModuleType):
            note_library(cx, value, name)
        return StaticValue(found)
    return capture(cx, found, lambda: getattr(value, name), name, _path(value, name))


def _batch_attribute(cx: Context, batched: Batched, name: str) -> Any:
    found = batched.attribute(name)
    if found is None:
        raise cx.refusal(
            NotDifferentiable,
            f"'{name}' of the batch of a function that is defined here is not followed.",
            "Define that function, and its batch, at module level.",
        )
    return StaticValue(found)


def _path(owner: Any, name: str) -> Any:
    """The canonical path of an attribute of a module, class or function, independent of how it was reached."""
    if isinstance(owner, ModuleType):
        return ("global", id(vars(owner)), name)
    if isinstance(owner, type):
        owner = next((base for base in owner.__mro__ if name in vars(base)), owner)
    return (id(owner), name)


# ---- scalars and arrays --------------------------------------------------------------------------------------------


_OF_MEMORY = {
    "flat": "'flat' of an array that may not be contiguous is not followed.",
    "strides": "'strides' describe the memory layout of an array, which derivatives do not follow.",
    "base": "'base' tells who owns the memory of an array, which derivatives do not follow.",
    "resize": "'resize' changes the size of an array in place, which derivatives do not follow.",
}


def _number_attribute(cx: Context, owner: Any, name: str, hint: str | None) -> Any:
    type_ = type_of(owner)
    if isinstance(type_, Array):
        return _array_attribute(cx, owner, type_, name, hint)
    assert isinstance(type_, Scalar)
    match name:
        case "real" | "imag" if is_complex(type_):
            return emit_call(cx, PARTS[name], (owner,), hint=hint)
        case "real":
            return owner
        case "imag":
            return emit_call(cx, operator.mul, (owner, StaticValue(0)))
        case "is_integer":
            return Bound(StaticValue(Method("number", name)), (owner,))
    if may_be_array(cx, owner):
        _check_has(cx, owner.expr, name)
    if type_.python and name == "dtype" and cx.rules:  # rules read it of an argument, which may be a number
        return StaticValue(np.dtype(type_.dtype))
    if type_.python:
        cls = python_class(type_)
        if name in ("conjugate", "bit_length", "item") and hasattr(cls, name):
            return Bound(StaticValue(Method("number", name)), (owner,))
        if hasattr(cls, name):
            raise cx.refusal(
                NotDifferentiable,
                f"the attribute '{name}' of a Python {cls.__name__} is not supported.",
                "Write it with operators, and functions of math.",
            )
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
    if name in THROUGH_FUNCTIONS or name == "reshape" or has_method("number", name):
        kind = "number" if has_method("number", name) and name not in THROUGH_FUNCTIONS else "array"
        return Bound(StaticValue(Method(kind, name)), (owner,))
    if not hasattr(np.dtype(type_.dtype).type, name):
        cx.raise_(AttributeError, f"'numpy.{type_.dtype}' object has no attribute '{name}'")
    raise cx.refusal(
        NotDifferentiable, f"the attribute '{name}' of a NumPy number is not supported.", "Use a function of NumPy."
    )


def _check_has(cx: Context, number: Expr, name: str) -> None:
    """Refuse an array attribute of a value that is a Python scalar without this attribute on some path."""
    for kind in kinds_of(cx, number):
        if isinstance(kind, Scalar) and kind.python and not hasattr(python_class(kind), name):
            raise cx.refusal(
                NotDifferentiable,
                f"this may be an array without axes, or a Python {python_class(kind).__name__}, which has no '{name}'.",
                "Use a function of NumPy, e.g. np.reshape(x, -1).",
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
            return transposed(cx, owner, hint)
        case "mT":
            return call_library(cx, np.matrix_transpose, [owner], {}, hint)
        case "dtype":
            return StaticValue(np.dtype(type_.dtype))
        case "nbytes":
            size = attribute(cx, owner, "size")
            return emit_call(cx, operator.mul, (size, StaticValue(np.dtype(type_.dtype).itemsize)))
        case "flat" if type_.layout == "C":
            flat = call_library(cx, np.ravel, [owner], {}, hint)
            cx.symbols.flat.add(flat.expr)
            return flat
        case "flat" if type_.rank == 1:
            array = array_operand(cx, owner)
            row = cx.assign(
                hint or TEMPORARY, Load(array, (Slice(),), type_)
            )  # another name, of which a slice is a copy
            cx.symbols.roots[row] = cx.symbols.roots_of(array)
            cx.symbols.flat.add(row)
            return Leaf(row)
        case "flat" | "strides" | "base" | "resize":
            raise cx.refusal(NotDifferentiable, _OF_MEMORY[name], "Use np.ravel, np.reshape, or indices.")
        case "itemsize":
            return StaticValue(np.dtype(type_.dtype).itemsize)
        case "real" | "imag" if is_complex(type_):
            if cx.recursion.parts and isinstance(whole := operand(cx, owner), Var):
                return part_of(cx, PARTS[name], whole)
            return emit_call(cx, PARTS[name], (owner,), hint=hint)
        case "real":
            return owner
        case "imag":
            zeros = emit_call(cx, np.zeros_like, (owner,))
            return emit_call(cx, np.broadcast_to, (zeros, shape_of(cx, owner)), hint=hint)  # read-only
    if name in THROUGH_FUNCTIONS or has_method("array", name):
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
    return tuple_of(
        dims, whole=Call(intrinsics.shape, (array,), (), TupleOf((INT,) * type_.rank)) if type_.rank else None
    )
