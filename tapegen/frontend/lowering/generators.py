"""Generators of the user's functions: nothing runs before the items are consumed, then all items are computed at once.

A loop over them is correct if neither side sees changes by the other between two items: the generator changes nothing
that existed before, and the loop nothing that the generator reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import GeneratorType
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.handlers import handles
from tapegen.frontend.source.desugar_yield import collected
from tapegen.frontend.values.context import Context, OpenIf, OpenLatch, OpenLoop
from tapegen.frontend.values.materialize import struct_of
from tapegen.frontend.values.pytree import StaticValue, Struct, dict_of, tuple_of
from tapegen.frontend.values.state import SPENT, Closure, Ref, Series, known_value
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Assign, Call, Effect, Store, Var
from tapegen.ir.types import Array, ListOf

_LIST_ADVICE = "Make a list first: items = list(generator)."


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """The values that a generator has read."""

    start: int  # when it began: younger values were made by it, or after it
    reads: frozenset[Var]
    reads_lists: bool
    cells: dict[int, Any]  # the containers that it may read, with their contents
    stores: bool


def generator_of(cx: Context, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Ref:
    """The result of a call of a generator function."""
    number = StaticValue((cx.new_number(), len(cx.heads)))
    children = (func, tuple_of(args), dict_of(kwargs.items()), number)
    return cx.new_cell(Struct("object", ("func", "args", "kwds", "number"), children, GeneratorType))


def is_generator(cx: Context, value: Any) -> bool:
    """Whether a value is a generator of a user's function."""
    content = struct_of(cx, value) if isinstance(value, Ref) else None
    return content is not None and content.cls is GeneratorType


@handles(collected, takes="generator")
def _collected(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    content = struct_of(cx, args[0])
    assert content is not None
    func, given, named, number = content.children
    count, loops = known_value(number)
    if cx.state.taken.get(count) or loops < len(cx.heads):
        raise cx.refusal(
            NotDifferentiable, "a generator gives its items once, and this may ask for them again.", _LIST_ADVICE
        )
    cx.state.taken[count] = SPENT
    before = {cell: held.content for cell, held in cx.state.cells.items()}
    reachable = {cell: before[cell] for cell in (*_cells(cx, given), *_cells(cx, named), *cx.caller.owned)}
    mark, start = len(cx.builder.items), cx.now
    items = cx.collect(cx, func if isinstance(func, Closure) else known_value(func), given, named)
    written = list(_each(cx.builder.items[mark:]))
    stores = any(isinstance(item, Store) or (isinstance(item, Effect) and _is_old(cx, item, start)) for item in written)
    changed = any(cx.state.cells[cell].content is not held for cell, held in before.items())
    arrays = (var for item in written for var in _read(item) if isinstance(var.type, Array))
    reads = frozenset(var for var in arrays if cx.age(var) <= start)
    lists = any(isinstance(var.type, ListOf) and cx.age(var) <= start for item in written for var in _read(item))
    inner = isinstance(func, Closure)  # may read variables that the loop binds
    cx.containers.generated[items.cell] = Generated(start, reads, lists, reachable, stores or changed or inner)
    return items


def _cells(cx: Context, value: Any) -> Iterator[int]:
    """The containers in a value."""
    if isinstance(value, Ref):
        yield value.cell
        value = cx.state.cells[value.cell].content
    if isinstance(value, Struct):
        for child in value.children:
            yield from _cells(cx, child)


def _is_old(cx: Context, item: Effect, start: int) -> bool:
    return not item.call.args or not isinstance(item.call.args[0], Var) or cx.age(item.call.args[0]) <= start


def listed(cx: Context, value: Any) -> Any:
    """A generator as the list of its items, for a consumer that iterates over them; else the value."""
    if not is_generator(cx, value):
        return value
    items = cx.call(cx, StaticValue(collected), (value,), {})
    _check_independent(cx, cx.containers.generated[items.cell])
    return items


def of_generator(cx: Context, items: Ref, series: Series) -> Series:
    """The series of the items of a generator, for a consumer that iterates over them."""
    generated = cx.containers.generated[items.cell]
    _check_independent(cx, generated)
    return replace(series, behind=(generated,))


def _check_independent(cx: Context, generated: Generated) -> None:
    if generated.stores:
        raise cx.refusal(
            NotDifferentiable,
            "this generator may change between two items what its caller sees, or see what its caller changes.",
            _LIST_ADVICE,
        )


def check_loop(cx: Context, series: Series, mark: int, start: int) -> None:
    """Refuse a loop over a generator that changes what the generator may read, or what it has yielded."""
    for generated in series.behind:
        for item in _each(cx.builder.items[mark:]):
            changed = item.array if isinstance(item, Store) else _changed_by(item)
            if changed is None:
                continue
            is_list = isinstance(changed.type, ListOf)
            if generated.reads_lists if is_list else not _is_independent(cx, changed, generated, start):
                raise _seen(cx)
        for cell, content in generated.cells.items():
            if cx.state.cells[cell].content is not content:
                raise _seen(cx)


def _changed_by(item: Any) -> Var | None:
    """The array or list that a call changes."""
    first = item.call.args[0] if isinstance(item, Effect) and item.call.args else None
    return first if isinstance(first, Var) and isinstance(first.type, Array | ListOf) else None


def _seen(cx: Context) -> Exception:
    return cx.refusal(
        NotDifferentiable, "this loop changes what the generator that it runs over may still read.", _LIST_ADVICE
    )


def _is_independent(cx: Context, array: Var, generated: Generated, start: int) -> bool:
    """Whether an array is independent of the generator: made in the loop, or older and not read by it."""
    roots = cx.symbols.roots_of(array)
    if roots is None:
        return False
    old = all(cx.age(root) <= generated.start for root in roots)
    return all(cx.age(root) > start and _is_new(cx, root) for root in roots) or (
        old and not any(cx.symbols.may_overlap(array, var) for var in generated.reads)
    )


def _is_new(cx: Context, root: Var) -> bool:
    """Whether an array is the result of a computation, and no item of a list."""
    made = cx.symbols.definitions.get(root)
    return isinstance(made, Call) and made.func is not intrinsics.item and made.func not in intrinsics.VIEW_CALLS


def _each(items: Sequence[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, OpenIf):
            yield from _each(item.body.items)
            yield from _each(item.orelse.items)
        elif isinstance(item, OpenLoop):
            yield from _each(item.body.items)
        yield item


def _read(item: Any) -> Iterator[Var]:
    match item:
        case Assign(_, value):
            parts: Sequence[Any] = (value,)
        case OpenLatch(pairs):
            parts = [value for _, value in pairs]
        case OpenIf(test) | OpenLoop(test=test):
            parts = (test,)
        case Effect(call):
            parts = (call,)
        case _:
            parts = ()
    for part in parts:
        yield from traversal.free_vars(part)
