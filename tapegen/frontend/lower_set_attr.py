"""Assignments to attributes of objects."""

from __future__ import annotations

import dataclasses
from types import FunctionType, MemberDescriptorType
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.frontend.lower_capture import class_member
from tapegen.frontend.lower_context import Context
from tapegen.frontend.lower_index import Place, store_place
from tapegen.frontend.lower_parts import PARTS, follow_parts, part_of
from tapegen.frontend.lower_state import Captured, Ref
from tapegen.frontend.lower_values import describe, named, operand, struct_of, type_of
from tapegen.frontend.structure import StaticValue
from tapegen.ir.types import Array, is_complex


def set_attribute(cx: Context, owner: Any, name: str, value: Any) -> None:
    """`owner.name = value`."""
    if isinstance(owner, Ref):
        content = struct_of(cx, owner)
        if content is not None and content.kind == "object":
            if _set_by_class(cx, owner, content.cls, name, value):
                return
            cx.set_cell(owner, content.with_child(name, named(cx, cx.frame, name, value)))
            return
    if isinstance(owner, Captured):
        raise cx.refusal(
            NotDifferentiable,
            f"this writes '{owner.name}.{name}', which is not part of the result.",
            "Return the new value, and assign it outside.",
        )
    type_ = type_of(owner)
    if name in PARTS and isinstance(type_, Array) and is_complex(type_):
        follow_parts(cx)
        store_place(cx, Place(part_of(cx, PARTS[name], operand(cx, owner)), []), value)
        return
    raise cx.refusal(
        NotDifferentiable,
        f"the attribute '{name}' of {describe(cx, owner)} cannot be set here.",
        "Build a new value.",
    )


def _set_by_class(cx: Context, owner: Any, cls: type, name: str, value: Any) -> bool:
    """What the class of an object does when an attribute is set; False where it leaves that to Python."""
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
