"""Sequence builtins: ranges, lists, tuples, dicts, and their copies."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import gast

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.handlers import handles
from tapegen.frontend.calls.resolve import call_value
from tapegen.frontend.expressions.expressions import spread
from tapegen.frontend.expressions.iterables import (
    applied,
    enumerated,
    iterator,
    known_length,
    next_item,
    range_series,
    reversed_,
    series_of,
    zipped,
)
from tapegen.frontend.library.attributes import attribute
from tapegen.frontend.library.builtins import Args, Hint, Kwargs, inline_template
from tapegen.frontend.lowering.emit import emit_call, fold
from tapegen.frontend.lowering.generators import is_generator
from tapegen.frontend.source.desugar_yield import collected
from tapegen.frontend.templates import builtin_functions
from tapegen.frontend.values.captures import special_method
from tapegen.frontend.values.constant_shapes import extent
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.dynamic_lists import length
from tapegen.frontend.values.materialize import is_int, operand, refuse_text, static, struct_of
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, dict_of, list_of, tuple_of
from tapegen.frontend.values.state import ABSENT, Series, SliceValue, known_value
from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Const
from tapegen.ir.types import INT, Array

# ---- series --------------------------------------------------------------------------------------------------------


@handles(range, takes="start, stop=None, step=1, /")
def _range(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    ends = (0,) if len(args) == 1 else (1,)  # loops over the range itself evaluate its end at once
    return range_series(cx, [arg if k in ends else cx.counted(arg) for k, arg in enumerate(args)])


@handles(range.__getitem__, takes="*args")
def _part_of_range(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    """`range(...)[k]` and `range(...)[a:b:c]`."""
    series, part = args if len(args) == 2 else (args[0], None)
    if series.bounds is None or series.iterator is not None or part is None:
        cx.raise_(TypeError, "this object is not subscriptable")
    start, stop, step = (StaticValue(x.value) if isinstance(x, Const) else Leaf(x) for x in series.bounds)
    stride = known_value(step)
    if isinstance(part, SliceValue) and stride is not UNKNOWN:
        first, last, every = (None if x is None else known_value(x) for x in (part.lo, part.hi, part.step))
        bounds = (known_value(start), known_value(stop))
        if UNKNOWN not in (first, last, every, *bounds):
            return StaticValue(range(*bounds, stride)[first:last:every])
        if (first, last, every) == (None, None, -1):
            return reversed_(cx, series)
        from_front = first is None or (first is not UNKNOWN and first >= 0)
        to_end = last is None or (last is not UNKNOWN and last < 0 and abs(stride) == 1)
        if from_front and to_end and (every is None or (every is not UNKNOWN and every > 0)):
            low = emit_call(cx, operator.add, (start, StaticValue((first or 0) * stride))) if first else start
            high = emit_call(cx, operator.add, (stop, StaticValue(last * stride))) if last else stop
            return range_series(cx, (low, high, StaticValue(stride * (every or 1))))
    if is_int(part) and isinstance(series.length, int) and known_value(part) is not UNKNOWN:
        if not -series.length <= known_value(part) < series.length:
            cx.raise_(IndexError, "range object index out of range")
        return series.item(StaticValue(range(series.length)[known_value(part)]))
    raise cx.refusal(
        NotDifferentiable,
        "this part of a range depends on values that are not known here.",
        "Pass the bounds to 'range' itself: range(first, last, step).",
    )


@handles(enumerate, takes="iterable, start=0")
def _enumerate(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    items, start = [*args, StaticValue(0)][:2]
    return enumerated(cx, items, start)


@handles(zip, takes="*iterables, strict=False")
def _zip(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return zipped(cx, args, bool(static(cx, kwargs.get("strict", StaticValue(False)), "'strict'")))


@handles(reversed, takes="sequence, /")
def _reversed(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    return reversed_(cx, args[0])


@handles(iter, takes="iterable, /")
def _iter(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    (items,) = args
    if isinstance(items, Series) and items.iterator is not None:
        return items
    return items if is_generator(cx, items) else iterator(cx, series_of(cx, items))


@handles(next, takes="iterator, default=None, /")
def _next(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    made, *default = args
    node = cx.node.args[0] if isinstance(cx.node, gast.Call) and cx.node.args else None
    if is_generator(cx, made) or isinstance(node, gast.GeneratorExp):
        raise cx.refusal(
            NotDifferentiable,
            "all items of a generator are computed at once, so there is no next one.",
            "Loop with 'for' and leave it by 'break', or make a list first: items = list(generator).",
        )
    if not isinstance(made, Series) or made.iterator is None:
        cx.raise_(TypeError, "this object is not an iterator")
    item = next_item(cx, made, may_end=bool(default))
    return default[0] if item is ABSENT else item


@handles(map, takes="function, iterable, /, *iterables")
def _map(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    func, *values = args
    return applied(cx, func, values)


@handles(len, takes="obj, /")
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
        if start == Const(0) and isinstance(stop, Call) and stop.func in (intrinsics.dim, len):
            return Leaf(value.length)
        return Leaf(Call(max, (value.length, Const(0)), (), INT))  # bounds may cross
    content = struct_of(cx, value)
    if content is not None:
        special = special_method(cx, content.cls, "__len__")
        if content.kind == "object" and special is not None:
            return call_value(cx, StaticValue(special), args, {}, hint)
        return StaticValue(len(content.children))
    known = fold(cx, len, args)
    if known is not UNKNOWN:
        return StaticValue(known)
    refuse_text(cx, value)
    cx.raise_(TypeError, "object of this type has no len()")


# ---- containers ----------------------------------------------------------------------------------------------------


def _items_of(cx: Context, value: Any) -> tuple[Any, ...] | None:
    """The items of an iterable, if their number is known and no loop produces them."""
    if isinstance(value, Series):
        if isinstance(value.length, int) and (value.unroll or value.length <= 16):
            value = series_of(cx, value)
            return tuple(value.item(StaticValue(k)) for k in range(value.length))
        return None
    if struct_of(cx, value) is not None or isinstance(value, StaticValue):
        return spread(cx, value)
    return None


@handles(list, takes="iterable=(), /")
def make_list(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if not args:
        return cx.new_cell(list_of(()))
    if is_generator(cx, args[0]):
        return call_value(cx, StaticValue(collected), args, {})
    items = _items_of(cx, args[0])
    return inline_template(cx, builtin_functions.copied, args) if items is None else cx.new_cell(list_of(items))


@handles(tuple, takes="iterable=(), /")
def _tuple(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if not args:
        return tuple_of(())
    args = [make_list(cx, args, {}, None)] if is_generator(cx, args[0]) else args
    items = _items_of(cx, args[0])
    if items is None:
        series = series_of(cx, args[0])
        items = tuple(series.item(StaticValue(k)) for k in range(known_length(cx, series)))
    return tuple_of(items)


@handles(dict, takes="mapping=(), /, **items")
def _dict(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    items: list[tuple[Any, Any]] = []
    if args:
        items.extend(pairs_of(cx, args[0]))
    return cx.new_cell(dict_of([*items, *kwargs.items()]))


@handles(dict.fromkeys, takes="iterable, value=None, /")
def _with_keys(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    keys, value = [*args, StaticValue(None)][:2]
    known = [static(cx, key, "a key of a dict") for key in _items_of(cx, keys) or spread(cx, keys)]
    return cx.new_cell(dict_of((key, value) for key in dict.fromkeys(known)))


def pairs_of(cx: Context, value: Any) -> Iterator[tuple[Any, Any]]:
    """The keys and values from which a dict is built."""
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


@handles(sorted, takes="iterable, /, *, key=None, reverse=False")
def _sorted(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    known = known_value(args[0])
    items = StaticValue(sorted(known)) if isinstance(known, (set, frozenset)) and "key" not in kwargs else args[0]
    made = call_value(cx, StaticValue(list), [items], {})
    call_value(cx, attribute(cx, made, "sort"), [], kwargs)
    return made


@handles(intrinsics.new_list, takes="*args")
def _repeated(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    count, *items = args
    return inline_template(cx, builtin_functions.repeated, [count, tuple_of(items)])
