"""Attribute stores: assignments to attributes of objects."""

from __future__ import annotations

import dataclasses
from types import FunctionType, MemberDescriptorType
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.expressions.subscript_stores import store_place
from tapegen.frontend.expressions.subscripts import Place
from tapegen.frontend.mutation.caller_objects import note_key
from tapegen.frontend.mutation.written_captures import set_static_attribute, write_captured
from tapegen.frontend.values.captures import class_member
from tapegen.frontend.values.complex_parts import PARTS, follow_parts, part_of
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import describe, named, operand, struct_of, type_of
from tapegen.frontend.values.pytree import StaticValue, children_of
from tapegen.frontend.values.state import Captured, Ref
from tapegen.ir.types import Array, Scalar, Type, is_complex, python_class


def set_attribute(cx: Context, owner: Any, name: str, value: Any) -> None:
    """`owner.name = value`."""
    if isinstance(owner, Ref):
        content = struct_of(cx, owner)
        if content is not None and content.kind == "object":
            if _set_by_class(cx, owner, content.cls, name, value):
                return
            note_key(cx, owner, name)
            cx.set_cell(owner, content.with_child(name, named(cx, cx.frame, name, value)))
            return
    if isinstance(owner, Captured):
        content = children_of(owner.value)
        if content is not None and content.kind == "object" and _set_by_class(cx, owner, content.cls, name, value):
            return
        write_captured(cx, owner)
    if isinstance(owner, StaticValue):
        held = named(cx, cx.frame, name, value)
        if set_static_attribute(cx, owner.value, name, held):
            return
    type_ = type_of(owner)
    if name in PARTS and isinstance(type_, Array) and is_complex(type_):
        follow_parts(cx)
        store_place(cx, Place(part_of(cx, PARTS[name], operand(cx, owner)), []), value)
        return
    if type_ is not None:
        _refuse_of_numbers(cx, type_, name)
    raise cx.refusal(
        NotDifferentiable,
        f"the attribute '{name}' of {describe(cx, owner)} cannot be set here.",
        "Build a new value.",
    )


def _refuse_of_numbers(cx: Context, type_: Type, name: str) -> None:
    """Refuse to set attributes of arrays and scalars."""
    if isinstance(type_, Array):
        cls: type = np.ndarray
    elif isinstance(type_, Scalar):
        cls = python_class(type_) if type_.python else np.dtype(type_.dtype).type
    else:
        return
    if not hasattr(cls, name):
        named = "numpy." if cls.__module__ == "numpy" else ""
        cx.raise_(AttributeError, f"'{named}{cls.__name__}' object has no attribute '{name}'")
    if name == "shape":
        raise cx.refusal(
            NotDifferentiable,
            "setting 'shape' changes an array for all of its names.",
            "Write x = x.reshape(shape), and use that.",
        )


def _set_by_class(cx: Context, owner: Any, cls: type, name: str, value: Any) -> bool:
    """Set an attribute as the class defines (`__setattr__`, property); False where the class does not."""
    if isinstance(class_member(cx, cls, "__setattr__"), FunctionType):
        if dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            cx.raise_(dataclasses.FrozenInstanceError, f"cannot assign to field '{name}'")
        raise cx.refusal(
            NotDifferentiable, f"'{cls.__name__}' decides itself how attributes are set.", "Build a new value."
        )
    found = class_member(cx, cls, name)
    if isinstance(found, property):
        if found.fset is None:
            cx.raise_(AttributeError, f"property '{name}' of '{cls.__name__}' object has no setter")
        cx.call(cx, StaticValue(found.fset), [owner, value], {})
        return True
    if hasattr(type(found), "__set__") and not isinstance(found, MemberDescriptorType):
        raise cx.refusal(
            NotDifferentiable, f"'{cls.__name__}.{name}' decides itself how it is set.", "Build a new value."
        )
    return False
