"""Iterables: the series that a for loop iterates over."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import EnumType
from typing import Any

import gast

from tapegen.errors import NotDifferentiable
from tapegen.frontend.expressions.expressions import evaluate
from tapegen.frontend.expressions.subscripts import Place, load_place
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.lowering.generators import is_generator, of_generator
from tapegen.frontend.source.desugar_yield import collected
from tapegen.frontend.values.constant_shapes import extent
from tapegen.frontend.values.context import Context, NeedsConstant
from tapegen.frontend.values.dynamic_lists import item, length
from tapegen.frontend.values.materialize import (
    array_operand,
    definite,
    describe,
    expr_of,
    int_expr,
    is_int,
    run_list_of,
    struct_of,
    type_of,
)
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct, tuple_of
from tapegen.frontend.values.state import ABSENT, SPENT, Iterator, Ref, Series, View, known_value
from tapegen.ir import builders, intrinsics
from tapegen.ir.nodes import Call, Const, Expr
from tapegen.ir.types import BOOL, INT, Array

ENDLESS = sys.maxsize
"""The length of an infinite series."""


def iterable(cx: Context, node: gast.AST) -> Series:
    """The series that `for ... in node` iterates over."""
    return series_of(cx, evaluate(cx, node))


def series_of(cx: Context, value: Any) -> Series:
    """A value as a series."""
    value = definite(cx, value)
    if is_generator(cx, value):
        items = cx.call(cx, StaticValue(collected), (value,), {})
        return of_generator(cx, items, series_of(cx, items))
    if isinstance(value, Series):
        return _begun(cx, value)
    if isinstance(value, Leaf) and isinstance(value.type, Array):
        array = array_operand(cx, value)
        if value.type.rank == 0:
            cx.raise_(TypeError, "iteration over a 0-d array")
        return Series(
            expr_of(cx, size := extent(cx, array, 0)),
            lambda k: load_place(cx, Place(Leaf(array), [k])),
            known=known_value(size),
        )
    run_list = run_list_of(cx, value)
    if run_list is not None:
        return Series(expr_of(cx, length(cx, value)), lambda k: item(cx, run_list, k), lists=frozenset({value.cell}))
    if isinstance(value, StaticValue) and isinstance(value.value, range):
        bounds = (StaticValue(part) for part in (value.value.start, value.value.stop, value.value.step))
        return range_series(cx, tuple(bounds))
    if isinstance(value, StaticValue) and isinstance(value.value, (str, tuple, list, dict, EnumType)):
        return _of_items(tuple(map(StaticValue, value.value)))
    content = struct_of(cx, value)
    if isinstance(value, View) and isinstance(value.owner, Ref) and content is not None:
        return Series(
            len(content.children),
            lambda k: struct_of(cx, value).children[known_value(k)],  # type: ignore[union-attr]
            unroll=True,
            lists=frozenset({value.owner.cell}),
        )
    if content is not None and content.kind == "dict":
        keys = _of_items(tuple(map(StaticValue, content.keys)))
        return replace(keys, lists=frozenset({value.cell})) if isinstance(value, Ref) else keys
    if content is not None and content.kind in ("tuple", "list"):
        if isinstance(value, Ref):
            return Series(
                len(content.children), lambda k: load_place(cx, Place(value, [k])), True, lists=frozenset({value.cell})
            )
        return _of_items(content.children)
    if type_of(value) is not None:
        cx.raise_(TypeError, "a number is not iterable")
    if isinstance(value, StaticValue) and isinstance(value.value, (set, frozenset)):
        raise cx.refusal(
            NotDifferentiable,
            "the order of a set is not that of the next process, so a loop over it is not written out.",
            "Loop over sorted(...) of it.",
        )
    raise cx.refusal(NotDifferentiable, f"a loop over {describe(cx, value)} is not supported.", "Loop over a range.")


def iterator(cx: Context, series: Series) -> Series:
    """A one-pass iterator over a series."""
    contents = tuple((cell, cx.state.cells[cell].content) for cell in sorted(series.lists))
    return replace(series, iterator=Iterator(cx.new_number(), len(cx.heads), contents))


def next_item(cx: Context, series: Series, *, may_end: bool) -> Any:
    """The next item of an iterator.

    Parameters
    ----------
    cx : Context
        The context.
    series : Series
        An iterator.
    may_end : bool
        Whether to return `ABSENT` where there is no item, instead of raising StopIteration.

    Raises
    ------
    NeedsConstant
        Whether there is one is not known yet.
    """
    taken = _taken(cx, series)
    if may_end or isinstance(series.length, int) or series.known is not UNKNOWN:
        if known_length(cx, series) <= taken:
            if may_end:
                return ABSENT
            cx.raise_(StopIteration, "")
    else:
        cx.raise_if(Call(operator.le, (series.length, Const(taken)), (), BOOL), StopIteration, "")
    assert series.iterator is not None
    cx.state.taken[series.iterator.number] = taken + 1
    return series.item(StaticValue(taken))


def _begun(cx: Context, series: Series) -> Series:
    """A series whose iteration starts now; of an iterator, the items that are left."""
    if series.iterator is None:
        return series
    taken = _taken(cx, series)
    cx.state.taken[series.iterator.number] = SPENT
    whole = replace(series, iterator=None)
    return whole if taken == 0 else _remaining(cx, whole, taken)


def _remaining(cx: Context, series: Series, taken: int) -> Series:
    """A series without its first items, which it has."""
    count = None if series.count is None else (series.item(StaticValue(taken)), series.count[1])
    left = series.length
    if left != ENDLESS:
        left = left - taken if isinstance(left, int) else Call(operator.sub, (left, Const(taken)), (), INT)
    return replace(
        series,
        length=left,
        item=lambda k: series.item(emit_call(cx, operator.add, (k, StaticValue(taken)))),
        bounds=None,
        known=UNKNOWN if series.known is UNKNOWN else series.known - taken,
        axes=None,
        count=count,
    )


def _taken(cx: Context, series: Series) -> int:
    """How many items an iterator has given, which must be known."""
    made = series.iterator
    assert made is not None
    taken = cx.state.taken.get(made.number, 0)
    if taken == SPENT or made.loops < len(cx.heads):
        raise cx.refusal(
            NotDifferentiable,
            "an iterator gives its items once, and this may ask for them again.",
            "Make a list of it (list(...)), or write the call here again.",
        )
    for cell, before in made.contents:
        if not _has_same_items(before, cx.state.cells[cell].content):
            raise cx.refusal(
                NotDifferentiable,
                "this iterates over a list or dict that has changed since the iterator was made.",
                "Make the iterator after the change, or iterate over a copy: list(...).",
            )
    return taken


def _has_same_items(before: Any, after: Any) -> bool:
    """Whether a container has as many items as before, under the same keys."""
    if before is after:
        return True
    if not isinstance(before, Struct) or not isinstance(after, Struct):
        return False
    return len(before.children) == len(after.children) and before.keys == after.keys


def _of_items(items: Sequence[Any]) -> Series:
    return Series(len(items), lambda k: items[known_value(k)], unroll=True)


def range_series(cx: Context, args: Sequence[Any]) -> Series:
    """`range(...)`."""
    for arg in args:
        if not is_int(arg) and not isinstance(known_value(arg), bool):
            cx.raise_(TypeError, "'float' object cannot be interpreted as an integer")
    if len(args) == 1:
        args = (StaticValue(0), args[0])
    start, stop, step = (*args, StaticValue(1)) if len(args) == 2 else args
    if known_value(step) == 0:
        cx.raise_(ValueError, "range() arg 3 must not be zero")
    bounds = (int_expr(cx, start), int_expr(cx, stop), int_expr(cx, step))
    known = [known_value(part) for part in (start, stop, step)]
    size: Any = len(range(*known)) if UNKNOWN not in known else None
    if size is None:
        size = _length(*bounds)

    def element(k: Any) -> Any:
        if isinstance(k, StaticValue) and UNKNOWN not in known:
            return StaticValue(range(*known)[k.value])
        scaled = emit_call(cx, operator.mul, (step, k)) if known[2] != 1 else k
        return emit_call(cx, operator.add, (start, scaled)) if known[0] != 0 else scaled

    return Series(size, element, bounds=bounds)


def _length(start: Expr, stop: Expr, step: Expr) -> Expr:
    """The number of items of a range; with steps of 1 it is negative where the bounds cross."""
    if step == Const(1):
        return stop if start == Const(0) else Call(operator.sub, (stop, start), (), INT)
    if isinstance(step, Const) and isinstance(step.value, int):
        low, high = (start, stop) if step.value > 0 else (stop, start)
        distance = high if low == Const(0) else Call(operator.sub, (high, low), (), INT)
        width = abs(step.value)
        rounded = builders.int_add(distance, Const(width - 1))
        return Call(max, (Call(operator.floordiv, (rounded, Const(width)), (), INT), Const(0)), (), INT)
    return Call(len, (Call(range, (start, stop, step), (), INT),), (), INT)


def indices(length: Any) -> Series:
    """`range(length)`."""
    size = Const(length) if isinstance(length, int) else length
    return Series(length, lambda k: k, bounds=(Const(0), size, Const(1)))


def mapped(series: Sequence[Series], combine: Callable[..., Any]) -> Series:
    """A series that maps a function over several series, as long as the shortest."""
    ending = [one for one in series if one.length != ENDLESS] or series
    known = [one.length for one in ending if isinstance(one.length, int)]
    unroll = any(one.unroll for one in series)
    unknown = [one.length for one in ending if not isinstance(one.length, int)]
    size: Any
    if not unknown:
        size = min(known)
    else:
        exprs = [*unknown, *map(Const, known)]
        size = exprs[0] if len(set(exprs)) == 1 else Call(min, tuple(exprs), (), INT)
    lists = frozenset[int]().union(*(one.lists for one in series))
    counts = [one.length if isinstance(one.length, int) else one.known for one in ending]
    return Series(
        size,
        lambda k: combine(k, *(one.item(k) for one in series)),
        unroll and not unknown,
        known=UNKNOWN if UNKNOWN in counts else min(counts),
        lists=lists,
        behind=tuple(generated for one in series for generated in one.behind),
    )


def zipped(cx: Context, values: Sequence[Any], strict: bool = False) -> Series:
    """`zip(...)`."""
    if any(run_list_of(cx, value) is not None for value in values):
        values = [_growing(cx, value) for value in values]
    series = [series_of(cx, value) for value in values]
    if strict:
        for k, one in enumerate(series[1:], 2):
            _check_equal(cx, series[0].length, one.length, f"zip(): the lengths of arguments 1 and {k} differ")
    if any(one.length == 0 for one in series):
        return Series(0, lambda k: StaticValue(None), unroll=True)
    if any(one.unroll for one in series):
        series = [one if one.known is UNKNOWN else replace(one, length=one.known) for one in series]
    if any(one.unroll for one in series):  # longer run-time lengths are truncated, shorter ones must be known
        for one in series:
            known_length(cx, one)
    return mapped(series, lambda k, *items: tuple_of(items))


def _check_equal(cx: Context, a: Any, b: Any, message: str) -> None:
    if isinstance(a, int) and isinstance(b, int):
        if a != b:
            cx.raise_(ValueError, message)
        return
    left, right = (Const(size) if isinstance(size, int) else size for size in (a, b))
    if left != right:
        cx.raise_if(Call(operator.ne, (left, right), (), BOOL), ValueError, message)


def _growing(cx: Context, value: Any) -> Any:
    """A list zipped with a growing list: it probably grows as well, and is indexed in the same way."""
    content = struct_of(cx, value)
    if content is None or content.kind != "list" or not content.children:
        return value
    return cx.call(cx, StaticValue(intrinsics.new_list), (Leaf(Const(1)), *content.children), {})


def known_length(cx: Context, series: Series) -> int:
    """The length of a series that is unrolled.

    Raises
    ------
    NeedsConstant
        It is not known yet.
    """
    if isinstance(series.length, int):
        return series.length
    if series.known is not UNKNOWN:
        return int(series.known)
    refusal = cx.refusal(
        NotDifferentiable,
        "the number of these items must be known before the program runs.",
        "Loop over indices (for i in range(len(items)): for j in range(i)), or over arrays or lists of numbers.",
    )
    raise NeedsConstant(series.length, refusal)


def enumerated(cx: Context, value: Any, start: Any) -> Series:
    """`enumerate(...)`."""
    series = series_of(cx, value)

    def element(k: Any, part: Any) -> Any:
        number = k if known_value(start) == 0 else emit_call(cx, operator.add, (k, start))
        return tuple_of((number, part))

    return mapped([series], element)


def applied(cx: Context, func: Any, values: Sequence[Any]) -> Series:
    """`map(...)`."""
    return mapped([series_of(cx, value) for value in values], lambda k, *items: cx.call(cx, func, items, {}))


def reversed_(cx: Context, value: Any) -> Series:
    """`reversed(...)`."""
    if isinstance(value, Series) and value.iterator is not None:
        cx.raise_(TypeError, "an iterator is not reversible")
    series = series_of(cx, value)
    if series.bounds is not None and isinstance(series.bounds[2], Const):
        start, stop, step = series.bounds
        assert isinstance(step, Const) and isinstance(step.value, int)
        if abs(step.value) == 1:
            sign = step.value
            one = Const(sign)
            first, last = (Call(operator.sub, (part, one), (), INT) for part in (stop, start))
            bounds = (_folded(first), _folded(last), Const(-sign))
            return Series(series.length, lambda k: series.item(_from_end(cx, series.length, k)), bounds=bounds)
    return replace(series, item=lambda k: series.item(_from_end(cx, series.length, k)), bounds=None)


def _folded(expr: Call) -> Expr:
    left, right = expr.args
    if isinstance(left, Const) and isinstance(right, Const):
        return Const(left.value - right.value)  # type: ignore[operator]
    return expr


def _from_end(cx: Context, length: Any, k: Any) -> Any:
    size = StaticValue(length) if isinstance(length, int) else Leaf(length)
    last = emit_call(cx, operator.sub, (size, StaticValue(1)))
    return emit_call(cx, operator.sub, (last, k))
