"""Iterator combinators: `itertools`, `np.ndindex`, `np.ndenumerate`."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.handlers import handles
from tapegen.frontend.calls.resolve import call_value
from tapegen.frontend.expressions.expressions import spread
from tapegen.frontend.expressions.iterables import ENDLESS, known_length, mapped, range_series, series_of
from tapegen.frontend.expressions.subscripts import Place, load_place
from tapegen.frontend.expressions.unions import choose
from tapegen.frontend.library.builtins import Args, Hint, Kwargs
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.templates import stdlib_functions
from tapegen.frontend.values.captures import computed
from tapegen.frontend.values.constant_shapes import extent
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import expr_of, is_int, operand, static, struct_of, truth
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, tuple_of
from tapegen.frontend.values.state import Axes, Ref, Series, known_value
from tapegen.ir.types import Array


def _length(series: Series) -> Any:
    """The length of a series as a value."""
    return StaticValue(series.length) if isinstance(series.length, int) else Leaf(series.length, series.known)


def _size(cx: Context, value: Any) -> Any:
    """A value as the length of a series."""
    return value.value if isinstance(value, StaticValue) else expr_of(cx, value)


def _pool(cx: Context, value: Any) -> Series:
    """All items of an iterable, which Python reads before it yields the first result."""
    if isinstance(value, Leaf) and isinstance(value.type, Array) and value.type.rank == 1:
        value = emit_call(cx, np.copy, (value,))
    elif isinstance(value, Ref):
        value = call_value(cx, StaticValue(list), [value], {})
    return series_of(cx, value)


# ---- products ------------------------------------------------------------------------------------------------------


@handles(itertools.product, takes="*iterables, repeat=1")
def _product(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    times = static(cx, kwargs.get("repeat", StaticValue(1)), "'repeat'")
    return _grid(cx, [_pool(cx, arg) for arg in args] * times)


@handles(np.ndindex, takes="*shape")
def _ndindex(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    sizes = spread(cx, args[0]) if len(args) == 1 and struct_of(cx, args[0]) is not None else args
    return _grid(cx, [range_series(cx, [size]) for size in sizes])


@handles(np.ndenumerate, takes="arr")
def _ndenumerate(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    (value,) = args
    if not (isinstance(value, Leaf) and isinstance(value.type, Array)):
        value = call_value(cx, StaticValue(np.array), [value], {})
    array = operand(cx, value)

    def element(index: Sequence[Any]) -> Any:
        return load_place(cx, Place(Leaf(array), list(index)))

    return _grid(cx, [range_series(cx, [extent(cx, array, k)]) for k in range(value.type.rank)], element)


def _grid(cx: Context, factors: list[Series], beside: Callable[[Sequence[Any]], Any] | None = None) -> Series:
    """The Cartesian product of series, the last one varying fastest; or pairs of its tuples and another value."""
    unroll = any(one.unroll for one in factors) or not factors
    sizes = [StaticValue(known_length(cx, one)) if unroll else _length(one) for one in factors]
    total: Any = StaticValue(1)
    for size in sizes:
        total = emit_call(cx, operator.mul, (total, size))

    def item(k: Any) -> Any:
        parts = []
        for place in range(len(factors) - 1, 0, -1):
            parts.append(factors[place].item(emit_call(cx, operator.mod, (k, sizes[place]))))
            k = emit_call(cx, operator.floordiv, (k, sizes[place]))
        parts += [one.item(k) for one in factors[:1]]
        made = tuple_of(reversed(parts))
        return made if beside is None else tuple_of((made, beside(made.children)))

    loops = tuple(functools.partial(_always, one) for one in factors)
    return Series(_size(cx, total), item, unroll, axes=Axes(loops, beside))


def _always(series: Series, outer: Sequence[Any]) -> Series:
    return series


# ---- combinations --------------------------------------------------------------------------------------------------


def _choices(func: Any, takes: str, number: Callable[..., int], step: int | None) -> None:
    """`number` counts the choices; each position is at least `step` after the last one (None: any position)."""

    @handles(func, takes=takes)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        pool, chosen = [*args, StaticValue(None)][:2]
        series = _pool(cx, pool)
        count = static(cx, chosen, "the number of items to choose")
        if count is None:
            count = known_length(cx, series)
        if series.unroll or count == 0:
            positions = func(range(known_length(cx, series)), count)
            made = [tuple_of(series.item(StaticValue(k)) for k in chosen) for chosen in positions]
            return Series(len(made), lambda k: made[known_value(k)], unroll=True)
        known = series.length if isinstance(series.length, int) else series.known
        length = _length(series) if known is UNKNOWN else StaticValue(known)
        total = call_value(cx, StaticValue(number), [length, StaticValue(count)], {})
        axes = None if step is None else Axes(_rising(cx, series, count, step))
        return Series(_size(cx, total), _from_table(cx, func, series, count), axes=axes)


def table_of(func: Callable[..., Any], size: int, count: int) -> np.ndarray:
    """The positions of all choices among `size` items."""
    return np.array(list(func(range(size), count)), dtype=np.int64).reshape(-1, count)


def _from_table(cx: Context, func: Any, series: Series, count: int) -> Callable[[Any], Any]:
    """The items of a loop that is not lowered to a loop nest: from a table computed at entry."""

    def item(k: Any) -> Any:
        getter = functools.partial(table_of, func, known_length(cx, series), count)
        table = computed(cx, getter(), getter, func.__name__, ("table", func, known_length(cx, series), count))
        return tuple_of(series.item(load_place(cx, Place(table, [k, StaticValue(part)]))) for part in range(count))

    return item


def _rising(cx: Context, series: Series, count: int, step: int) -> tuple[Callable[[Sequence[Any]], Series], ...]:
    """Nested loops, each of which starts `step` positions after the enclosing one."""
    size = _length(series)
    at: list[Any] = [None] * count  # the current positions of the enclosing loops

    def loop(place: int, outer: Sequence[Any]) -> Series:
        start: Any = StaticValue(0)
        if place:
            start = emit_call(cx, operator.add, (at[place - 1], StaticValue(step)))
        counted = range_series(cx, [start, size])

        def element(k: Any) -> Any:
            at[place] = counted.item(k)
            return series.item(at[place])

        return Series(counted.length, element)

    return tuple(functools.partial(loop, place) for place in range(count))


_choices(itertools.combinations, "iterable, r", stdlib_functions.choices, 1)
_choices(itertools.combinations_with_replacement, "iterable, r", stdlib_functions.repeated_choices, 0)
_choices(itertools.permutations, "iterable, r=None", stdlib_functions.arrangements, None)

# ---- concatenation and slices --------------------------------------------------------------------------------------


@handles(itertools.pairwise, takes="iterable, /")
def _pairwise(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    (series,) = (series_of(cx, arg) for arg in args)

    def item(k: Any) -> Any:
        return tuple_of((series.item(k), series.item(emit_call(cx, operator.add, (k, StaticValue(1))))))

    if series.unroll:
        return replace(series, length=max(known_length(cx, series) - 1, 0), item=item)
    fewer = emit_call(cx, operator.sub, (_length(series), StaticValue(1)))
    return replace(series, length=_size(cx, emit_call(cx, max, (fewer, StaticValue(0)))), item=item, bounds=None)


@handles(itertools.chain, takes="*iterables")
def _chain(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if not args:
        return Series(0, lambda k: StaticValue(None), unroll=True)
    series = [series_of(cx, arg) for arg in args]
    lists = frozenset[int]().union(*(one.lists for one in series))
    if any(one.unroll for one in series):
        places = [(one, StaticValue(k)) for one in series for k in range(known_length(cx, one))]

        def known_item(k: Any) -> Any:
            one, place = places[known_value(k)]
            return one.item(place)

        return Series(len(places), known_item, unroll=True, lists=lists)
    ends = list(itertools.accumulate(map(_length, series), lambda a, b: emit_call(cx, operator.add, (a, b))))

    def item(k: Any, part: int = 0) -> Any:
        place = emit_call(cx, operator.sub, (k, ends[part - 1])) if part else k
        if part == len(series) - 1:
            return series[part].item(place)
        test = truth(cx, emit_call(cx, operator.lt, (k, ends[part])))
        if isinstance(test, bool):
            return series[part].item(place) if test else item(k, part + 1)
        return choose(cx, test, lambda: series[part].item(place), lambda: item(k, part + 1), None)

    return Series(_size(cx, ends[-1]), item, lists=lists)


@handles(itertools.chain.from_iterable, takes="iterable, /")
def _chain_of(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if struct_of(cx, args[0]) is not None:
        return _chain(cx, list(spread(cx, args[0])), kwargs, hint)
    return series_of(cx, cx.call(cx, StaticValue(stdlib_functions.chained), args, {}))


@handles(itertools.accumulate, takes="iterable, func=None, *, initial=None")
def _accumulate(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    iterable, func = [*args, StaticValue(None)][:2]
    initial = kwargs.get("initial", StaticValue(None))
    items = call_value(cx, StaticValue(list), [iterable], {})
    func = StaticValue(operator.add) if known_value(func) is None else func
    if known_value(initial) is None:
        return series_of(cx, cx.call(cx, StaticValue(stdlib_functions.accumulated), (items, func), {}))
    return series_of(cx, cx.call(cx, StaticValue(stdlib_functions.accumulated_from), (items, func, initial), {}))


@handles(itertools.starmap, takes="function, iterable, /")
def _starmap(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    func, items = args
    series = series_of(cx, items)
    return mapped([series], lambda k, item: call_value(cx, func, spread(cx, item), {}))


@handles(itertools.islice, takes="iterable, start, stop=None, step=None, /")
def _islice(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    items, *bounds = args
    series = series_of(cx, items)
    start, stop, step = [StaticValue(0), *bounds, StaticValue(1)] if len(bounds) == 1 else [*bounds, StaticValue(1)][:3]
    end = _length(series)
    if known_value(stop) is not None:
        end = stop if series.length == ENDLESS else emit_call(cx, min, (stop, end))
    first = StaticValue(0) if known_value(start) is None else start
    places = range_series(cx, [first, end, StaticValue(1) if known_value(step) is None else step])
    if series.unroll:
        length = known_length(cx, places)
        return replace(series, length=length, item=lambda k: series.item(places.item(k)))
    return replace(mapped([places], lambda k, place: series.item(place)), lists=series.lists)


@handles(itertools.zip_longest, takes="*iterables, fillvalue=None")
def _zip_longest(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    fill = kwargs.get("fillvalue", StaticValue(None))
    series = [series_of(cx, arg) for arg in args]
    lengths = [known_length(cx, one) for one in series]

    def item(k: Any) -> Any:
        parts = zip(series, lengths, strict=True)
        return tuple_of(one.item(k) if known_value(k) < length else fill for one, length in parts)

    lists = frozenset[int]().union(*(one.lists for one in series))
    return Series(max(lengths, default=0), item, unroll=True, lists=lists)


# ---- infinite series -----------------------------------------------------------------------------------------------


@handles(itertools.repeat, takes="object, times=None")
def _repeat(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    item, *times = args
    return Series(_size(cx, times[0]) if times else ENDLESS, lambda k: item)


@handles(itertools.cycle, takes="iterable, /")
def _cycle(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    series = _pool(cx, args[0])
    size = StaticValue(known_length(cx, series)) if series.unroll else _length(series)
    return Series(ENDLESS, lambda k: series.item(emit_call(cx, operator.mod, (k, size))), series.unroll)


@handles(itertools.count, takes="start=0, step=1")
def _count(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    start = args[0] if args else StaticValue(0)
    step = args[1] if len(args) > 1 else StaticValue(1)
    if not (is_int(start) and is_int(step)):
        raise cx.refusal(NotDifferentiable, "itertools.count of floats adds up errors.", "Count with integers.")

    def item(k: Any) -> Any:
        return emit_call(cx, operator.add, (start, emit_call(cx, operator.mul, (step, k))))

    return Series(ENDLESS, item, count=(start, step))
