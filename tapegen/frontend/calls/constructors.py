"""Constructors: calls of named tuples, dataclasses and simple classes."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from types import FunctionType
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.inline import bind_parameters
from tapegen.frontend.source.hints import OF_CLASSES
from tapegen.frontend.values.captures import bound_value, class_member, is_method, special_method
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import adopt, static
from tapegen.frontend.values.pytree import StaticValue, Struct, abstract_of, tuple_of


def construct(cx: Context, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`cls(...)`: named tuples, dataclasses and simple classes."""
    if f"{cls.__module__}.{cls.__qualname__}" in OF_CLASSES:
        raise _not_followed(cx, cls)
    if issubclass(cls, enum.Enum) and len(args) == 1 and not kwargs:
        return _member(cx, cls, args[0])
    _check_default_construction(cx, cls)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        defaults = getattr(cls, "_field_defaults", {})
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        fields = [(name, kind, name in defaults, name) for name in cls._fields]
        values = bind_parameters(
            cx, cls.__name__, fields, lambda name: bound_value(cx, defaults[name], name, (id(cls), name)), args, kwargs
        )
        return tuple_of(values.values(), cls)
    if dataclasses.is_dataclass(cls) and not _has_source(cls.__init__):
        return _construct_dataclass(cx, cls, args, kwargs)
    if issubclass(cls, BaseException) or cls.__module__ == "builtins" or not hasattr(cls, "__dict__"):
        raise _not_followed(cx, cls)
    made = cx.new_cell(Struct("object", (), (), cls))
    init = special_method(cx, cls, "__init__")
    if is_method(init):
        cx.call(cx, StaticValue(init), [made, *args], kwargs)
    elif args or kwargs:
        raise _not_followed(cx, cls)
    return made


def _member(cx: Context, cls: type[enum.Enum], value: Any) -> StaticValue:
    """The member of an enumeration with a value."""
    known = static(cx, value, f"the value of a member of '{cls.__name__}'")
    try:
        return StaticValue(cls(known))
    except ValueError as error:
        cx.raise_(ValueError, str(error))


def _check_default_construction(cx: Context, cls: type) -> None:
    """Refuse a class that customizes construction (`__new__`, metaclass)."""
    owner = next(base for base in cls.__mro__ if "__new__" in vars(base))
    if isinstance(class_member(cx, cls, "__new__"), staticmethod) and "_fields" not in vars(owner):
        raise cx.refusal(
            NotDifferentiable, f"'{cls.__name__}' defines its own '__new__'.", "Make the object in a function."
        )
    if isinstance(class_member(cx, type(cls), "__call__"), FunctionType):
        raise cx.refusal(
            NotDifferentiable,
            f"the metaclass of '{cls.__name__}' determines what a call returns.",
            "Make the object in a function.",
        )


def _not_followed(cx: Context, cls: type) -> NotDifferentiable:
    advice = "Use tuples, lists, dicts whose keys are known, and classes written in Python."
    advice = OF_CLASSES.get(f"{cls.__module__}.{cls.__qualname__}", advice)
    return NotDifferentiable(f"objects of the class '{cls.__name__}' are not followed.", advice, cx.span())


def _has_source(init: Any) -> bool:
    return isinstance(init, FunctionType) and not init.__code__.co_filename.startswith("<")


def _construct_dataclass(cx: Context, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
    fields = {field.name: field for field in dataclasses.fields(cls)}
    missing = dataclasses.MISSING

    def of_field(field: Any) -> Any:
        factory = field.default_factory
        if factory is missing:
            return bound_value(cx, field.default, field.name, (id(cls), field.name))
        if factory in (list, dict) or isinstance(factory, FunctionType):
            return cx.call(cx, StaticValue(factory), (), {})
        return adopt(cx, abstract_of(factory(), field.name))

    def default(parameter: inspect.Parameter) -> Any:
        if parameter.name in fields:
            return of_field(fields[parameter.name])
        return bound_value(cx, parameter.default, parameter.name, (id(cls), parameter.name))

    made_by = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    parameters = [(p.name, p.kind, p.default is not p.empty, p) for p in made_by]
    values = bind_parameters(cx, cls.__name__, parameters, default, args, kwargs)
    for field in fields.values():
        if not field.init and (field.default is not missing or field.default_factory is not missing):
            values[field.name] = of_field(field)
    order = [name for name in fields if name in values]
    made = cx.new_cell(Struct("object", tuple(order), tuple(values[name] for name in order), cls))
    after = special_method(cx, cls, "__post_init__")
    if after is not None:
        cx.call(cx, StaticValue(after), [made, *(values[name] for name in values if name not in fields)], {})
    return made
