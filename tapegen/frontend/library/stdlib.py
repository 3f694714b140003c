"""Functions of the standard library that work on structures: `reduce`, `copy`, `dataclasses`, `statistics`."""

from __future__ import annotations

import bisect
import copy
import dataclasses
import functools
import heapq
import inspect
import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.handlers import handles
from tapegen.frontend.calls.resolve import call_value
from tapegen.frontend.expressions.subscripts import Place, load_place
from tapegen.frontend.library.builtins import Args, Hint, Kwargs
from tapegen.frontend.library.numpy_introspection import copy_in_order
from tapegen.frontend.templates import builtin_functions, stdlib_functions
from tapegen.frontend.values.captures import capture, special_method
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import run_list_of, static, struct_of
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct, dict_of, tuple_of
from tapegen.frontend.values.state import Bound, Ref, Series, SliceValue
from tapegen.ir.types import Array

_INITIAL = "/, initial=None" if sys.version_info >= (3, 14) else "initial=None, /"


@handles(functools.reduce, takes=f"function, iterable, {_INITIAL}")
def _reduce(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    func, items, *initial = args
    if initial:
        return cx.call(cx, StaticValue(stdlib_functions.reduced), (func, items, *initial), {})
    items = call_value(cx, StaticValue(list), [items], {}) if isinstance(items, Series) else items
    return cx.call(cx, StaticValue(stdlib_functions.reduced_from_first), (func, items), {})


def _found_by_halves(func: Callable[..., Any], text: Callable[..., Any]) -> None:
    @handles(func, takes="a, x, lo=0, hi=None")
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        return call_value(cx, StaticValue(text), args, kwargs)


_found_by_halves(bisect.bisect_left, stdlib_functions.place_left)
_found_by_halves(bisect.bisect_right, stdlib_functions.place_right)


def _in_order(func: Callable[..., Any], *, reverse: bool) -> None:
    @handles(func, takes="n, iterable, key=None")
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        count, items, key = [*args, StaticValue(None)][:3]
        ordered = call_value(cx, StaticValue(sorted), [items], {"key": key, "reverse": StaticValue(reverse)})
        return load_place(cx, Place(ordered, [SliceValue(hi=count)]))


_in_order(heapq.nsmallest, reverse=False)
_in_order(heapq.nlargest, reverse=True)


def _on_heap(func: Callable[..., Any], text: Callable[..., Any], takes: str) -> None:
    @handles(func, takes=takes)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        return call_value(cx, StaticValue(text), args, kwargs)


_on_heap(heapq.heappush, stdlib_functions.pushed_on_heap, "heap, item, /")
_on_heap(heapq.heappop, stdlib_functions.popped_from_heap, "heap, /")
_on_heap(heapq.heapify, stdlib_functions.made_a_heap, "heap, /")


@handles(inspect.getfullargspec, takes="func")
def _parameter_names(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    """`inspect.getfullargspec`: a constant as long as the function is the same."""
    function = static(cx, args[0], "the function")
    try:
        names = inspect.getfullargspec(function)
    except TypeError as error:
        cx.raise_(TypeError, str(error))
    return capture(cx, names, lambda: names, "parameters", ("parameters", id(function)))


# ---- copies --------------------------------------------------------------------------------------------------------


@handles(copy.copy, takes="x")
def _copy(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    (value,) = args
    if run_list_of(cx, value) is not None:
        return call_value(cx, StaticValue(list), [value], {})
    return _copied(cx, value, lambda child: child, hint)


@handles(copy.deepcopy, takes="x")
def _deepcopy(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    made: dict[Any, Any] = {}  # shared objects are copied once

    def copied(value: Any) -> Any:
        key = value.cell if isinstance(value, Ref) else value.expr if isinstance(value, Leaf) else None
        if key is None:
            return _copied(cx, value, copied)
        if key not in made:
            is_growing = run_list_of(cx, value) is not None
            text = StaticValue(stdlib_functions.copied_items)
            made[key] = cx.call(cx, text, (value,), {}) if is_growing else _copied(cx, value, copied)
        return made[key]

    return copied(args[0])


def _copied(cx: Context, value: Any, part: Callable[[Any], Any], hint: Hint = None) -> Any:
    """A copy of a value, with `part` applied to its children."""
    if isinstance(value, Leaf) and isinstance(value.type, Array):
        return copy_in_order(cx, value, "K", hint)
    content = struct_of(cx, value)
    if content is None:
        return value
    for name in ("__copy__", "__deepcopy__"):
        if content.kind == "object" and special_method(cx, content.cls, name) is not None:
            raise cx.refusal(
                NotDifferentiable, f"'{content.cls.__name__}' copies itself ('{name}').", "Make the copy by its class."
            )
    made = dataclasses.replace(content, children=tuple(map(part, content.children)), whole=None)
    return made if made.kind == "tuple" else cx.new_cell(made)


# ---- dataclasses ---------------------------------------------------------------------------------------------------


def _fields_of(cx: Context, value: Any) -> tuple[Struct, tuple[dataclasses.Field[Any], ...]]:
    content = struct_of(cx, value)
    if content is None or not dataclasses.is_dataclass(content.cls):
        cx.raise_(TypeError, "must be called with a dataclass type or instance")
    return content, dataclasses.fields(content.cls)


@handles(dataclasses.replace, takes="obj, /, **changes")
def _replace(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    content, fields = _fields_of(cx, args[0])
    given = {field.name: content.get(field.name) for field in fields if field.init and field.name not in kwargs}
    return call_value(cx, StaticValue(content.cls), [], given | kwargs)


@handles(dataclasses.fields, takes="class_or_instance")
def _fields(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    (value,) = args
    cls = value.value if isinstance(value, StaticValue) else _fields_of(cx, value)[0].cls
    return tuple_of(map(StaticValue, dataclasses.fields(cls)))


@handles(dataclasses.asdict, takes="obj")
def _asdict(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    def made(names: list[str], values: list[Any]) -> Any:
        return cx.new_cell(dict_of(zip(names, values, strict=True)))

    return _converted_fields(cx, args[0], made)


@handles(dataclasses.astuple, takes="obj")
def _astuple(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return _converted_fields(cx, args[0], lambda names, values: tuple_of(values))


def _converted_fields(cx: Context, value: Any, made: Callable[[list[str], list[Any]], Any]) -> Any:
    """Convert dataclasses with `made`, in containers too; other values are copied."""

    def part(child: Any) -> Any:
        content = struct_of(cx, child)
        if content is not None and dataclasses.is_dataclass(content.cls):
            names = [field.name for field in dataclasses.fields(content.cls)]
            return made(names, [part(content.get(name)) for name in names])
        return _copied(cx, child, part)

    _fields_of(cx, value)
    return part(value)


@handles(vars, takes="object=None, /")
def _vars(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    content = struct_of(cx, args[0]) if args else None
    if content is None or content.kind != "object":
        raise cx.refusal(NotDifferentiable, "vars() is for objects here.", "Name the attributes.")
    shown = dict_of(zip(content.keys, content.children, strict=True))
    return cx.new_cell(shown, "this changes the attributes of an object through a dict.")


# ---- statistics ----------------------------------------------------------------------------------------------------


def _statistic(func: Callable[..., Any], text: Callable[..., Any]) -> None:
    @handles(func, takes=inspect.signature(text))
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        data, *rest = args
        items = call_value(cx, StaticValue(list), [data], {}) if isinstance(data, Series) else data
        return cx.call(cx, StaticValue(text), (items, *rest), kwargs)


_statistic(statistics.fmean, stdlib_functions.fmean)
_statistic(statistics.mean, stdlib_functions.mean)
_statistic(statistics.variance, stdlib_functions.variance)
_statistic(statistics.pvariance, stdlib_functions.pvariance)
_statistic(statistics.stdev, stdlib_functions.stdev)
_statistic(statistics.pstdev, stdlib_functions.pstdev)
_statistic(statistics.median, stdlib_functions.median)

# ---- scalar functions, applied to arrays ---------------------------------------------------------------------------


@handles(np.vectorize, takes="pyfunc, otypes=None, doc=None, *, cache=False")
def _vectorize(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    func, otypes = [*args, StaticValue(None)][:2]
    known, dtype = static(cx, otypes, "'otypes'"), None
    if known is not None:
        (wanted,) = known
        dtype = np.dtype(wanted).type
    return Bound(StaticValue(builtin_functions.vectorized), (func, StaticValue(dtype)))
