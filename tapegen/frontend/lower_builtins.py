"""Builtins, and the functions of NumPy that look at types or write into their arguments."""

from __future__ import annotations

import copy
import dataclasses
import functools
import operator
from collections.abc import Iterator
from types import FunctionType, MemberDescriptorType
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend import builtin_texts
from tapegen.frontend.lower_attr import attribute
from tapegen.frontend.lower_call import call_value, handles
from tapegen.frontend.lower_capture import class_member, has_attribute, special_method
from tapegen.frontend.lower_choice import choose
from tapegen.frontend.lower_compare import both, compare_values
from tapegen.frontend.lower_context import Context, NotWhole
from tapegen.frontend.lower_emit import emit_call, fold
from tapegen.frontend.lower_expr import look_up_name, spread
from tapegen.frontend.lower_index import Place, load_place
from tapegen.frontend.lower_inline import inline_function
from tapegen.frontend.lower_iter import (
    applied,
    enumerated,
    known_length,
    range_series,
    reversed_,
    series_of,
    zipped,
)
from tapegen.frontend.lower_list import length
from tapegen.frontend.lower_numpy import call_library
from tapegen.frontend.lower_operators import binary
from tapegen.frontend.lower_shapes import extent
from tapegen.frontend.lower_state import Bound, Captured, Closure, Ref, Series, SliceValue, Super, known_value
from tapegen.frontend.lower_text import text_of
from tapegen.frontend.lower_values import as_bool, describe, operand, static, struct_of, truth, type_of
from tapegen.frontend.parse import MISSING
from tapegen.frontend.structure import UNKNOWN, Leaf, StaticValue, Struct, dict_of, list_of, tuple_of
from tapegen.frontend.syntax import arguments_of
from tapegen.ir import ops
from tapegen.ir.nodes import Call, Const
from tapegen.ir.types import BOOL, INT, STATIC, Array, RandomGenerator, Scalar, is_complex, is_floating, python_class

Args = list[Any]
Kwargs = dict[str, Any]
Hint = str | None

_func: Any


def written_out(cx: Context, text: Any, args: Args) -> Any:
    """Write out the Python text of a builtin; its statements belong to the user's statement."""
    return inline_function(cx, text, args, {})


# ---- numbers -------------------------------------------------------------------------------------------------------


def _plain(func: Any) -> None:
    @handles(func)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        if any(type_of(arg) is None for arg in args):
            known = fold(cx, func, args)
            if known is not UNKNOWN:
                return StaticValue(known)
            content = struct_of(cx, args[0])
            special = special_method(cx, content.cls, f"__{func.__name__}__") if content is not None else None
            if special is not None:
                return call_value(cx, StaticValue(special), args, kwargs, hint)
            cx.raise_(TypeError, f"bad operand type for {func.__name__}()")
        if func is pow:
            return call_value(cx, StaticValue(operator.pow), args, kwargs, hint)
        if func is round and isinstance(type_of(args[0]), Array):
            return call_library(cx, np.round, args, kwargs, hint)
        if func is round and len(args) == 2:
            args = [args[0], StaticValue(static(cx, args[1], "the number of digits"))]
        return emit_call(cx, func, args, kwargs, hint)


for _func in (abs, round, divmod, pow):
    _plain(_func)


@handles(operator.pow)
def _power(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return binary(cx, operator.pow, args[0], args[1], hint)


def _convert(func: Any) -> None:
    @handles(func)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        if not args:
            return StaticValue(func())
        (value, *rest) = args
        known = known_value(value)
        if isinstance(value, StaticValue) and known is not UNKNOWN and not isinstance(known, np.generic):
            try:
                return StaticValue(func(known, *(static(cx, part, "the base") for part in rest)))
            except (TypeError, ValueError, OverflowError) as error:
                cx.raise_(type(error), str(error))
        if isinstance(value, Leaf) and isinstance(value.type, Array):
            value = _only_element(cx, value)
        if type_of(value) is None:
            content = struct_of(cx, value)
            special = special_method(cx, content.cls, f"__{func.__name__}__") if content is not None else None
            if special is not None:
                return call_value(cx, StaticValue(special), args, kwargs, hint)
            cx.raise_(TypeError, f"{func.__name__}() argument must be a string or a real number")
        type_ = type_of(value)
        if is_complex(type_):
            raise cx.refusal(
                NotDifferentiable, f"{func.__name__}() of a complex number drops its imaginary part.", "Write z.real."
            )
        if isinstance(type_, Scalar) and type_.python and type_.dtype == ("int64" if func is int else "float64"):
            return value
        return emit_call(cx, func, (value,), {}, hint)


for _func in (int, float):
    _convert(_func)


def _only_element(cx: Context, value: Leaf) -> Any:
    """The element of an array of size 1, as `float(array)` takes it (NumPy raises for any other size)."""
    array = operand(cx, value)
    assert isinstance(array.type, Array)
    if array.type.rank:
        if array.type.rank > 1 or not array.type.is_unit(0):
            size = Call(np.size, (array,), (), INT)
            test = Call(operator.ne, (size, Const(1)), (), BOOL)
            cx.raise_if(test, TypeError, "only length-1 arrays can be converted to Python scalars")
        return load_place(cx, Place(Leaf(array), [StaticValue(0)] * array.type.rank))
    return load_place(cx, Place(Leaf(array), []))


@handles(bool)
def _bool(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return as_bool(cx, args[0]) if args else StaticValue(False)


def _extreme(func: Any, comparison: Any) -> None:
    @handles(func)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        if "default" in kwargs and len(args) == 1:
            rest = {name: value for name, value in kwargs.items() if name != "default"}
            items = call_value(cx, StaticValue(list), args, {}) if isinstance(args[0], Series) else args[0]
            given = [items, kwargs["default"], Bound(StaticValue(func), (), rest)]
            return written_out(cx, builtin_texts.unless_empty, given)
        kwargs = {name: value for name, value in kwargs.items() if known_value(value) is not None}  # key=None
        if "key" in kwargs and len(kwargs) == 1:
            items = args[0] if len(args) == 1 else tuple_of(args)
            return written_out(
                cx, builtin_texts.extreme, [_indexable(cx, items), StaticValue(comparison), kwargs["key"]]
            )
        if kwargs:
            raise cx.refusal(NotDifferentiable, f"keywords of {func.__name__}() are not supported.", "Write a loop.")
        if len(args) == 1:
            items = _indexable(cx, args[0])
            if struct_of(cx, items) is None:
                return written_out(cx, builtin_texts.extreme, [items, StaticValue(comparison), StaticValue(None)])
            args = list(spread(cx, items))
            if not args:
                cx.raise_(ValueError, f"{func.__name__}() iterable argument is empty")
        known = fold(cx, func, args)
        if known is not UNKNOWN:
            return StaticValue(known)
        best = args[0]
        for other in args[1:]:
            best = _better(cx, func, comparison, best, other, hint)
        return best


def _indexable(cx: Context, items: Any) -> Any:
    """What has items as something with places for them."""
    content = struct_of(cx, items)
    if isinstance(items, Series) or (content is not None and content.kind == "dict"):
        return call_value(cx, StaticValue(list), [items], {})
    return items


def _better(cx: Context, func: Any, comparison: Any, best: Any, other: Any, hint: Hint) -> Any:
    types = (type_of(best), type_of(other))
    if all(isinstance(type_, Scalar) and not is_floating(type_) for type_ in types):
        return emit_call(cx, func, (best, other))
    if cx.whole and all(isinstance(type_, Scalar) for type_ in types):
        return emit_call(cx, func, (best, other))
    test = truth(cx, compare_values(cx, comparison, other, best))
    if isinstance(test, bool):
        return other if test else best
    return choose(cx, test, lambda: other, lambda: best, hint)


_extreme(max, operator.gt)
_extreme(min, operator.lt)


@handles(sum)
def _sum(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    items, start = [*args, *kwargs.values(), StaticValue(0)][:2]
    if isinstance(items, Series):
        items = series_of(cx, items)
        if items.unroll:
            items = tuple_of(items.item(StaticValue(k)) for k in range(items.length))
    if isinstance(items, Series) or (struct_of(cx, items) is None and not isinstance(items, StaticValue)):
        return written_out(cx, builtin_texts.sum_of, [items, start])
    total = start
    for child in spread(cx, items):
        first = type(known_value(total)) is int and known_value(total) == 0
        # 0 + x is x, but a new array, and an integer if x is a bool
        if first and isinstance(type_of(child), Scalar) and getattr(type_of(child), "dtype", "bool") != "bool":
            total = child
        else:
            total = call_value(cx, StaticValue(operator.add), [total, child], {})
    return total


def _operator(func: Any) -> None:
    @handles(func)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        return binary(cx, func, args[0], args[1], hint)


for _func in (
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.matmul,
):
    _operator(_func)


def _quantified(func: Any, combine: Any, library: Any) -> None:
    @handles(func)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        (items,) = args
        if isinstance(items, Leaf) and isinstance(items.type, Array):
            if items.type.rank != 1:
                raise cx.refusal(
                    NotDifferentiable, f"{func.__name__}() of rows is ambiguous.", f"Use np.{func.__name__}."
                )
            return call_library(cx, library, args, {}, hint)
        result: Any = StaticValue(func is all)
        for child in spread(cx, _indexable(cx, items)):
            result = both(cx, combine, result, lambda child=child: as_bool(cx, child))  # type: ignore[misc]
        return result


_quantified(all, ops.and_, np.all)
_quantified(any, ops.or_, np.any)

# ---- series --------------------------------------------------------------------------------------------------------


@handles(range)
def _range(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return range_series(cx, args)


@handles(enumerate)
def _enumerate(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    start = args[1] if len(args) > 1 else kwargs.get("start", StaticValue(0))
    return enumerated(cx, args[0], start)


@handles(zip)
def _zip(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return zipped(cx, args, bool(static(cx, kwargs.get("strict", StaticValue(False)), "'strict'")))


@handles(reversed)
def _reversed(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return reversed_(cx, args[0])


@handles(map)
def _map(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    func, *values = args
    return applied(cx, func, values)


@handles(len)
def _len(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    (value,) = args
    if isinstance(value, Leaf) and isinstance(value.type, Array):
        array = operand(cx, value)
        assert isinstance(array.type, Array)
        if not array.type.rank:
            cx.raise_(TypeError, "len() of unsized object")
        return extent(cx, array, 0)
    found = length(cx, value)
    if found is not None:
        return found
    if isinstance(value, Series) and value.bounds is not None and value.iterator is None:
        if isinstance(value.length, int):
            return StaticValue(value.length)
        start, stop, _ = value.bounds
        if start == Const(0) and isinstance(stop, Call) and stop.func in (ops.dim, len):
            return Leaf(value.length)
        return Leaf(Call(len, (Call(range, value.bounds, (), INT),), (), INT))  # bounds may cross
    content = struct_of(cx, value)
    if content is not None:
        special = special_method(cx, content.cls, "__len__")
        if content.kind == "object" and special is not None:
            return call_value(cx, StaticValue(special), args, {}, hint)
        return StaticValue(len(content.children))
    known = fold(cx, len, args)
    if known is not UNKNOWN:
        return StaticValue(known)
    cx.raise_(TypeError, "object of this type has no len()")


# ---- containers ----------------------------------------------------------------------------------------------------


def _items_of(cx: Context, value: Any) -> tuple[Any, ...] | None:
    """The items of something that is iterated, if their number is known and they are not made in a loop."""
    if isinstance(value, Series):
        if isinstance(value.length, int) and (value.unroll or value.length <= 16):
            value = series_of(cx, value)
            return tuple(value.item(StaticValue(k)) for k in range(value.length))
        return None
    if struct_of(cx, value) is not None or isinstance(value, StaticValue):
        return spread(cx, value)
    return None


@handles(list)
def _list(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if not args:
        return cx.new_cell(list_of(()))
    items = _items_of(cx, args[0])
    return written_out(cx, builtin_texts.copied, args) if items is None else cx.new_cell(list_of(items))


@handles(tuple)
def _tuple(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if not args:
        return tuple_of(())
    items = _items_of(cx, args[0])
    if items is None:
        series = series_of(cx, args[0])
        items = tuple(series.item(StaticValue(k)) for k in range(known_length(cx, series)))
    return tuple_of(items)


@handles(dict)
def _dict(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    items: list[tuple[Any, Any]] = []
    if args:
        items.extend(pairs_of(cx, args[0]))
    return cx.new_cell(dict_of([*items, *kwargs.items()]))


def pairs_of(cx: Context, value: Any) -> Iterator[tuple[Any, Any]]:
    """The keys and values that a dict is made of."""
    content = struct_of(cx, value)
    if content is not None and content.kind == "dict":
        yield from zip(content.keys, content.children, strict=True)
        return
    pairs = _items_of(cx, value)
    if pairs is None:
        raise cx.refusal(
            NotDifferentiable, "the number of keys of this dict is not known here.", "Use a list or an array."
        )
    for pair in pairs:
        key, item = spread(cx, pair)
        yield static(cx, key, "a key of a dict"), item


@handles(sorted)
def _sorted(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    known = known_value(args[0])
    items = StaticValue(sorted(known)) if isinstance(known, set | frozenset) and "key" not in kwargs else args[0]
    made = call_value(cx, StaticValue(list), [items], {})
    call_value(cx, attribute(cx, made, "sort"), [], kwargs)
    return made


@handles(ops.new_list)
def _repeated(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    count, *items = args
    return written_out(cx, builtin_texts.repeated, [count, tuple_of(items)])


# ---- copies --------------------------------------------------------------------------------------------------------


@handles(copy.copy)
def _copy(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    (value,) = args
    content = struct_of(cx, value)
    if content is None or content.kind == "tuple":
        return _copied(cx, value, {})
    _check_copied_plainly(cx, content)
    return cx.new_cell(content)


@handles(copy.deepcopy)
def _deepcopy(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    (value,) = args
    return _copied(cx, value, {})


def _copied(cx: Context, value: Any, made: dict[Any, Any]) -> Any:
    """A copy all the way down; what is one object in two places is one in the copy too."""
    if isinstance(value, Leaf) and isinstance(value.type, Array):
        array = operand(cx, value)
        if array not in made:
            made[array] = call_library(cx, np.copy, [Leaf(array)], {})
        return made[array]
    if type_of(value) is not None or isinstance(value, StaticValue):
        return value
    if isinstance(value, Ref) and value.cell in made:
        return made[value.cell]
    content = struct_of(cx, value)
    if content is None or isinstance(value, Bound):
        raise cx.refusal(NotDifferentiable, f"copies of {describe(cx, value)} are not supported.", "Use list(...).")
    _check_copied_plainly(cx, content)
    children = tuple(_copied(cx, child, made) for child in content.children)
    copied = dataclasses.replace(content, children=children, whole=None)
    if content.kind == "tuple":
        return copied
    ref = cx.new_cell(copied)
    if isinstance(value, Ref):
        made[value.cell] = ref
    return ref


def _check_copied_plainly(cx: Context, content: Struct) -> None:
    for name in ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"):
        if isinstance(class_member(cx, content.cls, name), FunctionType):
            raise cx.refusal(
                NotDifferentiable, f"'{content.cls.__name__}' has a '{name}' of its own.", "Make the copy in a method."
            )


# ---- what a value is -----------------------------------------------------------------------------------------------


def class_of(cx: Context, value: Any) -> type:
    """The class of a value."""
    if isinstance(value, StaticValue):
        return type(value.value) if not isinstance(value.value, Closure) else type(class_of)
    if isinstance(value, Leaf):
        type_ = value.type
        if isinstance(type_, Array):
            return np.ndarray
        if isinstance(type_, Scalar):
            if not type_.python:
                return np.dtype(type_.dtype).type
            return python_class(type_)
        if isinstance(type_, RandomGenerator):
            return getattr(np.random, type_.kind)
        return str if type_ == STATIC else list
    if isinstance(value, Captured):
        return type(value.value)
    content = struct_of(cx, value)
    if content is not None:
        return content.cls
    return list if isinstance(value, Ref) else type(class_of)


@handles(isinstance)
def _isinstance(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    value, classes = args
    if isinstance(value, StaticValue) and not isinstance(value.value, Closure):
        return StaticValue(isinstance(value.value, static(cx, classes, "the class")))
    return StaticValue(issubclass(class_of(cx, value), static(cx, classes, "the class")))


@handles(type)
def _type(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if len(args) != 1:
        raise cx.refusal(NotDifferentiable, "making a class is not supported.", "Define it at module level.")
    return StaticValue(class_of(cx, args[0]))


@handles(callable)
def _callable(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    (value,) = args
    if isinstance(value, StaticValue):
        return StaticValue(isinstance(value.value, Closure) or callable(value.value))
    return StaticValue(isinstance(value, Bound) or class_member(cx, class_of(cx, value), "__call__") is not MISSING)


@handles(getattr)
def _getattr(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    owner, name, *default = args
    if default and not _has(cx, owner, static(cx, name, "the name")):
        return default[0]
    return attribute(cx, owner, static(cx, name, "the name"), hint)


@handles(hasattr)
def _hasattr(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return StaticValue(_has(cx, args[0], static(cx, args[1], "the name")))


def _has(cx: Context, owner: Any, name: str) -> bool:
    if isinstance(owner, StaticValue):
        value = owner.value
        return has_attribute(cx, value, name, lambda: value, id(value))
    if isinstance(owner, Captured):
        return has_attribute(cx, owner.value, name, owner.getter, owner.path)
    content, cls = struct_of(cx, owner), class_of(cx, owner)
    if special_method(cx, cls, "__getattr__") is not None:
        raise cx.refusal(
            NotDifferentiable, f"'{cls.__name__}' makes attributes as they are asked for.", "Ask for the attribute."
        )
    return (
        class_member(cx, cls, name) is not MISSING
        or hasattr(cls, name)
        or (content is not None and content.kind == "object" and name in content.keys)
    )


def _text(func: Any) -> None:
    @handles(func)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        known = [known_value(arg) for arg in args]
        if UNKNOWN not in known:
            return StaticValue(func(*known))
        return Leaf(Call(ops.fstring, (text_of(cx, args[0]),), (), STATIC))


for _func in (str, repr, format):
    _text(_func)


@handles(print)
def _print(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if cx.whole:
        raise NotWhole
    given = tuple((name, Const(static(cx, value, f"'{name}' of print"))) for name, value in kwargs.items())
    cx.effect(Call(print, tuple(text_of(cx, arg) for arg in args), given, STATIC))
    return StaticValue(None)


@handles(object.__setattr__)
def _setattr(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    """What the class says of attributes that are set is passed by: so frozen dataclasses fill their fields."""
    owner, name, value = args
    content = struct_of(cx, owner)
    known = static(cx, name, "the name of an attribute")
    found = class_member(cx, class_of(cx, owner), known)
    by_class = hasattr(type(found), "__set__") and not isinstance(found, MemberDescriptorType)
    if not isinstance(owner, Ref) or content is None or content.kind != "object" or by_class:
        raise cx.refusal(
            NotDifferentiable,
            f"the attribute '{known}' of {describe(cx, owner)} cannot be set here.",
            "Build a new value.",
        )
    cx.set_cell(owner, content.with_child(known, value))
    return StaticValue(None)


@handles(object.__init__)
def _nothing(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return StaticValue(None)


@handles(super)
def _super(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    """`super()` in a method: the class is in a cell of the function, the object is the first argument."""
    if args:
        after, owner = known_value(args[0]), args[1] if len(args) > 1 else None
    else:
        after = cx.frame.parsed.resolve("__class__")
        first = next(arguments_of(cx.frame.node), None)
        owner = None if first is None else look_up_name(cx, first.id)
    content = struct_of(cx, owner)
    cls = content.cls if content is not None else known_value(owner)
    if not (isinstance(after, type) and isinstance(cls, type) and issubclass(cls, after)):
        raise cx.refusal(
            NotDifferentiable, "this 'super' is not that of a method.", "Call the method of the base class by name."
        )
    return Super(owner, cls, after)


@handles(slice)
def _slice(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    parts = [None if known_value(arg) is None else arg for arg in args]
    parts = [None, parts[0], None] if len(parts) == 1 else [*parts, None][:3]
    return SliceValue(*parts)


@handles(functools.partial)
def _partial(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    func, *first = args
    return Bound(func, tuple(first), kwargs)
