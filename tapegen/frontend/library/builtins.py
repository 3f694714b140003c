"""Builtins: conversions, type tests, reductions over containers, attribute functions."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import MemberDescriptorType
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.handlers import handles
from tapegen.frontend.calls.inline import inline_function
from tapegen.frontend.calls.library_calls import call_library
from tapegen.frontend.calls.resolve import call_value
from tapegen.frontend.expressions.comparisons import both, compare_values
from tapegen.frontend.expressions.expressions import look_up_name, spread
from tapegen.frontend.expressions.iterables import series_of
from tapegen.frontend.expressions.operators import binary
from tapegen.frontend.expressions.strings import as_shown, text_of
from tapegen.frontend.expressions.subscripts import Place, load_place
from tapegen.frontend.expressions.unions import as_bool, choose, truth_of
from tapegen.frontend.library.attributes import attribute
from tapegen.frontend.lowering.attribute_stores import set_attribute
from tapegen.frontend.lowering.emit import emit_call, fold
from tapegen.frontend.source.parse import MISSING
from tapegen.frontend.source.syntax_tree import arguments_of
from tapegen.frontend.templates import builtin_functions
from tapegen.frontend.values.captures import class_member, has_attribute, note_read, special_method
from tapegen.frontend.values.constant_shapes import extent
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import describe, is_int, operand, static, struct_of, type_of
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, tuple_of
from tapegen.frontend.values.state import Bound, Captured, Closure, Ref, Series, SliceValue, Super, View, known_value
from tapegen.frontend.values.type_sets import kinds_of
from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Const, Var
from tapegen.ir.types import (
    BOOL,
    FLOAT,
    INT,
    STATIC,
    Array,
    RandomGenerator,
    Scalar,
    Type,
    is_complex,
    is_floating,
    python_class,
)

Args = list[Any]
Kwargs = dict[str, Any]
Hint = str | None

_func: Any


def inline_template(cx: Context, text: Any, args: Args) -> Any:
    """Inline the Python template of a builtin; its statements belong to the user's statement."""
    return inline_function(cx, text, args, {})


# ---- scalars -------------------------------------------------------------------------------------------------------


def _plain(func: Any, takes: str) -> None:
    @handles(func, takes=takes)
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
        if func is round and isinstance(type_of(args[0]), Array):
            return call_library(cx, np.round, args, kwargs, hint)
        if func is divmod and any(isinstance(type_of(arg), Array) for arg in args):
            return call_library(cx, np.divmod, args, kwargs, hint)
        if func is round and len(args) == 2:
            args = [args[0], StaticValue(static(cx, args[1], "the number of digits"))]
        return emit_call(cx, func, args, kwargs, hint)


_plain(abs, "x, /")
_plain(round, "number, ndigits=None")
_plain(divmod, "x, y, /")


@handles(pow, takes="base, exp, mod=None")
def _pow(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    base, exponent, modulus = [*args, StaticValue(None)][:3]
    if known_value(modulus) is None:
        return binary(cx, operator.pow, base, exponent, hint)
    parts = (base, exponent, modulus)
    known = fold(cx, pow, parts)
    if known is not UNKNOWN:
        return StaticValue(known)
    if not all(map(is_int, parts)):
        cx.raise_(TypeError, "pow() 3rd argument not allowed unless all arguments are integers")
    return inline_template(cx, builtin_functions.power_modulo, list(parts))


@handles(operator.pow, takes="a, b, /")
def _power(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return binary(cx, operator.pow, args[0], args[1], hint)


def _convert(func: Any, takes: str) -> None:
    @handles(func, takes=takes)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        if not args:
            return StaticValue(func())
        value, *base = args
        known = known_value(value)
        if isinstance(value, StaticValue) and known is not UNKNOWN and not isinstance(known, np.generic):
            try:
                return StaticValue(func(known, *(static(cx, part, "the base") for part in base)))
            except (TypeError, ValueError, OverflowError) as error:
                cx.raise_(type(error), str(error))
        if base:
            cx.raise_(TypeError, "int() can't convert non-string with explicit base")
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


_convert(int, "x=0, /, base=10")
_convert(float, "x=0.0, /")


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


@handles(bool, takes="x=False, /")
def _bool(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return as_bool(cx, args[0]) if args else StaticValue(False)


def _extreme(func: Any, comparison: Any) -> None:
    @handles(func, takes="*args, key=None, default=None")
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        if "default" in kwargs and len(args) == 1:
            rest = {name: value for name, value in kwargs.items() if name != "default"}
            items = call_value(cx, StaticValue(list), args, {}) if isinstance(args[0], (Series, View)) else args[0]
            given = [items, kwargs["default"], Bound(StaticValue(func), (), rest)]
            return inline_template(cx, builtin_functions.unless_empty, given)
        kwargs = {name: value for name, value in kwargs.items() if known_value(value) is not None}  # key=None
        if "key" in kwargs and len(kwargs) == 1:
            items = args[0] if len(args) == 1 else tuple_of(args)
            return inline_template(
                cx, builtin_functions.extreme, [_indexable(cx, items), StaticValue(comparison), kwargs["key"]]
            )
        if kwargs:
            raise cx.refusal(NotDifferentiable, f"keywords of {func.__name__}() are not supported.", "Write a loop.")
        if len(args) == 1:
            items = _indexable(cx, args[0])
            if struct_of(cx, items) is None:
                return inline_template(
                    cx, builtin_functions.extreme, [items, StaticValue(comparison), StaticValue(None)]
                )
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
    """An iterable as something that can be indexed."""
    content = struct_of(cx, items)
    if isinstance(items, (Series, View)) or (content is not None and content.kind == "dict"):
        return call_value(cx, StaticValue(list), [items], {})
    return items


def _better(cx: Context, func: Any, comparison: Any, best: Any, other: Any, hint: Hint) -> Any:
    types = (type_of(best), type_of(other))
    if all(isinstance(type_, Scalar) and not is_floating(type_) for type_ in types):
        return emit_call(cx, func, (best, other))
    if cx.whole and all(isinstance(type_, Scalar) for type_ in types):
        return emit_call(cx, func, (best, other))
    test = truth_of(cx, compare_values(cx, comparison, other, best))
    if isinstance(test, bool):
        return other if test else best
    return choose(cx, test, lambda: other, lambda: best, hint)


_extreme(max, operator.gt)
_extreme(min, operator.lt)


_SUM_OF = builtin_functions.compensated_sum_of if builtin_functions.COMPENSATES else builtin_functions.sum_of


@handles(builtin_functions.are_floats, takes="*values")
def _are_floats(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return StaticValue(all(type_of(arg) == FLOAT for arg in args))


@handles(sum, takes="iterable, /, start=0")
def _sum(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    items, start = [*args, StaticValue(0)][:2]
    if isinstance(items, Series):
        items = series_of(cx, items)
        if items.unroll:
            items = tuple_of(items.item(StaticValue(k)) for k in range(items.length))
    type_ = type_of(items)
    if isinstance(type_, Array) and type_.rank and known_value(extent(cx, operand(cx, items), 0)) == 0:
        return start  # also if it is an integer and the array is not
    if isinstance(items, Series) or (struct_of(cx, items) is None and not isinstance(items, StaticValue)):
        return inline_template(cx, _SUM_OF, [items, start])
    total = start
    if builtin_functions.COMPENSATES and sum(type_of(child) == FLOAT for child in spread(cx, items)) > 1:
        return inline_template(cx, _SUM_OF, [items, start])
    for child in spread(cx, items):
        first = type(known_value(total)) is int and known_value(total) == 0
        # 0 + x is x, but a new array, and an integer if x is a bool
        if first and isinstance(type_of(child), Scalar) and getattr(type_of(child), "dtype", "bool") != "bool":
            total = child
        else:
            total = call_value(cx, StaticValue(operator.add), [total, child], {})
    return total


def _operator(func: Any) -> None:
    @handles(func, takes="a, b, /")
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
    @handles(func, takes="iterable, /")
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


_quantified(all, intrinsics.and_, np.all)
_quantified(any, intrinsics.or_, np.any)

# ---- types and identity --------------------------------------------------------------------------------------------


def class_of(cx: Context, value: Any) -> type:
    """The class of a value."""
    if isinstance(value, StaticValue):
        return type(value.value) if not isinstance(value.value, Closure) else type(class_of)
    if isinstance(value, Leaf):
        return _class_of_type(value.type)
    if isinstance(value, Captured):
        return type(value.value)
    if isinstance(value, View):
        return value.cls
    content = struct_of(cx, value)
    if content is not None:
        return content.cls
    return list if isinstance(value, Ref) else type(class_of)


def _class_of_type(type_: Type) -> type:
    if isinstance(type_, Array):
        return np.ndarray
    if isinstance(type_, Scalar):
        return python_class(type_) if type_.python else np.dtype(type_.dtype).type
    if isinstance(type_, RandomGenerator):
        return getattr(np.random, type_.kind)
    return str if type_ == STATIC else list


def _same_on_all_paths(cx: Context, value: Any, asked: Callable[[type], Any]) -> StaticValue:
    """The result of a query of the class of a value, if it is the same on all paths."""
    if not isinstance(value, Leaf):
        return StaticValue(asked(class_of(cx, value)))
    classes = {_class_of_type(kind) for kind in kinds_of(cx, value.expr)}
    answers = {asked(cls) for cls in classes}
    if len(answers) > 1:
        name = f"'{value.expr.name.partition('#')[0]}'" if isinstance(value.expr, Var) else "this value"
        names = " or ".join(sorted(cls.__name__ for cls in classes))
        raise cx.refusal(
            NotDifferentiable,
            f"{name} is {names}, depending on the path: the answer is not known when compiling.",
            "Give it one type on all paths (start with 0.0 instead of 0), or ask for something else.",
        )
    return StaticValue(answers.pop())


@handles(isinstance, takes="obj, class_or_tuple, /")
def _isinstance(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    value, classes = args
    cls = static(cx, classes, "the class")
    if isinstance(value, StaticValue) and not isinstance(value.value, Closure):
        return StaticValue(isinstance(value.value, cls))
    return _same_on_all_paths(cx, value, lambda found: issubclass(found, cls))


@handles(type, takes="object, bases=None, dict=None, /")
def _type(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if len(args) != 1:
        raise cx.refusal(NotDifferentiable, "making a class is not supported.", "Define it at module level.")
    return _same_on_all_paths(cx, args[0], lambda found: found)


@handles(callable, takes="obj, /")
def _callable(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    (value,) = args
    if isinstance(value, StaticValue):
        return StaticValue(isinstance(value.value, Closure) or callable(value.value))
    return StaticValue(isinstance(value, Bound) or class_member(cx, class_of(cx, value), "__call__") is not MISSING)


@handles(getattr, takes="object, name, default=None, /")
def _getattr(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    owner, name, *default = args
    if default and not _has(cx, owner, static(cx, name, "the name")):
        return default[0]
    return attribute(cx, owner, static(cx, name, "the name"), hint)


@handles(setattr, takes="obj, name, value, /")
def _set_by_name(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    owner, name, value = args
    set_attribute(cx, owner, static(cx, name, "the name"), value)
    return StaticValue(None)


@handles(hasattr, takes="obj, name, /")
def _hasattr(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return StaticValue(_has(cx, args[0], static(cx, args[1], "the name")))


def _has(cx: Context, owner: Any, name: str) -> bool:
    if isinstance(owner, StaticValue):
        value = owner.value
        return has_attribute(cx, value, name, lambda: value, id(value))
    if isinstance(owner, Captured):
        note_read(cx, owner, name)
        return has_attribute(cx, owner.value, name, owner.getter, owner.path)
    content, cls = struct_of(cx, owner), class_of(cx, owner)
    if special_method(cx, cls, "__getattr__") is not None:
        raise cx.refusal(
            NotDifferentiable, f"'{cls.__name__}' makes attributes as they are asked for.", "Ask for the attribute."
        )
    if content is not None and content.kind == "object" and name in content.keys:
        return True
    found = _same_on_all_paths(
        cx, owner, lambda asked: class_member(cx, asked, name) is not MISSING or hasattr(asked, name)
    )
    return bool(found.value)


def _text(func: Any, takes: str) -> None:
    @handles(func, takes=takes)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        known = [known_value(arg) for arg in args]
        if UNKNOWN not in known:
            return StaticValue(func(*known))
        return Leaf(Call(intrinsics.fstring, (text_of(cx, args[0]),), (), STATIC))


_text(str, 'object="", /')
_text(repr, "obj, /")


@handles(format, takes='value, format_spec="", /')
def _format(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    value, spec = [*args, StaticValue("")][:2]
    return as_shown(cx, value, None, static(cx, spec, "the format"))


@handles(object.__setattr__, takes="self, name, value, /")
def _setattr(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    """`object.__setattr__`, which bypasses `__setattr__` of the class: frozen dataclasses set their fields with it."""
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


@handles(object.__init__, takes="self, /")
def _nothing(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return StaticValue(None)


@handles(super, takes="type=None, object=None, /")
def _super(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    """`super()` in a method: the class comes from the `__class__` cell, the object is the first argument."""
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


@handles(slice, takes="start, stop=None, step=None, /")
def _slice(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    parts = [None if known_value(arg) is None else cx.counted(arg) for arg in args]
    parts = [None, parts[0], None] if len(parts) == 1 else [*parts, None][:3]
    return SliceValue(*parts)


@handles(functools.partial, takes="func, /, *args, **keywords")
def _partial(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    func, *first = args
    return Bound(func, tuple(map(cx.counted, first)), {name: cx.counted(arg) for name, arg in kwargs.items()})
