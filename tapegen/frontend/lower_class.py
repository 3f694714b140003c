"""Calls of classes: named tuples, dataclasses and simple classes."""

from __future__ import annotations

import dataclasses
import inspect
from types import FunctionType
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.frontend.lower_capture import bound_value, is_method, special_method
from tapegen.frontend.lower_context import Context
from tapegen.frontend.lower_inline import bind_parameters
from tapegen.frontend.lower_values import adopt
from tapegen.frontend.structure import StaticValue, Struct, abstract_of, tuple_of


def construct(cx: Context, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`cls(...)`: named tuples, dataclasses and simple classes."""
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
        raise cx.refusal(
            NotDifferentiable, f"'{cls.__name__}' objects are not followed.", "Use tuples, lists and dicts."
        )
    made = cx.new_cell(Struct("object", (), (), cls))
    init = special_method(cx, cls, "__init__")
    if is_method(init):
        cx.call(cx, StaticValue(init), [made, *args], kwargs)
    elif args or kwargs:
        raise cx.refusal(NotDifferentiable, f"'{cls.__name__}' is not written in Python.", "Use a dataclass.")
    return made


def _has_source(init: Any) -> bool:
    return isinstance(init, FunctionType) and not init.__code__.co_filename.startswith("<")


def _construct_dataclass(cx: Context, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
    kinds = inspect.Parameter
    fields = [field for field in dataclasses.fields(cls) if field.init]
    missing = dataclasses.MISSING
    parameters = [
        (
            field.name,
            kinds.KEYWORD_ONLY if field.kw_only else kinds.POSITIONAL_OR_KEYWORD,
            field.default is not missing or field.default_factory is not missing,
            field,
        )
        for field in sorted(fields, key=lambda field: bool(field.kw_only))
    ]

    def default(field: Any) -> Any:
        if field.default is not missing:
            return bound_value(cx, field.default, field.name, (id(cls), field.name))
        return adopt(cx, abstract_of(field.default_factory(), field.name))

    values = bind_parameters(cx, cls.__name__, parameters, default, args, kwargs)
    for field in dataclasses.fields(cls):
        if not field.init and (field.default is not missing or field.default_factory is not missing):
            values[field.name] = default(field)
    order = [field.name for field in dataclasses.fields(cls) if field.name in values]
    made = cx.new_cell(Struct("object", tuple(order), tuple(values[name] for name in order), cls))
    after = special_method(cx, cls, "__post_init__")
    if after is not None:
        cx.call(cx, StaticValue(after), [made], {})
    return made
