"""Arrays made of growing lists: `np.vstack(rows)`, `np.concatenate(parts)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegen.frontend.calls.handlers import PASSED_ON, handles
from tapegen.frontend.calls.library_calls import call_library
from tapegen.frontend.calls.resolve import call_value
from tapegen.frontend.library.builtins import Args, Hint, Kwargs
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.templates import builtin_functions
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import run_list_of, static
from tapegen.frontend.values.pytree import StaticValue
from tapegen.ir.types import Array


def _joining(func: Callable[..., Any], make: Callable[[Context, Any, int, int], Any]) -> None:
    """Register a function that joins lists: `make` takes a list, the item rank and an axis; None if unsupported."""

    @handles(func, takes=PASSED_ON)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        rank = _rank(cx, args[0]) if args else None
        rest = {name: value for name, value in kwargs.items() if name != "axis"}
        if rank is None or rest or len(args) > 2:
            return call_library(cx, func, args, kwargs, hint)
        axis = args[1] if len(args) > 1 else kwargs.get("axis", StaticValue(0))
        made = make(cx, args[0], rank, static(cx, axis, "the axis"))
        return call_library(cx, func, args, kwargs, hint) if made is None else made


def _rank(cx: Context, value: Any) -> int | None:
    """The rank of the items of a growing list of scalars or arrays."""
    run_list = run_list_of(cx, value)
    if run_list is None or len(run_list.columns) > 1:
        return None
    item = run_list.columns[0].type.item  # type: ignore[union-attr]
    return item.rank if isinstance(item, Array) else 0


def _as_array(cx: Context, items: Any) -> Any:
    return emit_call(cx, np.array, (items,))


def _stacked(cx: Context, items: Any, rank: int, axis: int) -> Any:
    made = _as_array(cx, items)
    return (
        made if axis == 0 else call_value(cx, StaticValue(np.moveaxis), [made, StaticValue(0), StaticValue(axis)], {})
    )


def _rows(cx: Context, items: Any, rank: int, axis: int) -> Any:
    if rank == 0:
        return call_value(cx, StaticValue(np.expand_dims), [_as_array(cx, items), StaticValue(1)], {})
    return _as_array(cx, items) if rank == 1 else _concatenated(cx, items, rank, 0)


def _columns(cx: Context, items: Any, rank: int, axis: int) -> Any:
    if rank > 1:
        return None
    made = _as_array(cx, items)
    return call_value(cx, StaticValue(np.transpose if rank else np.atleast_2d), [made], {})


def _concatenated(cx: Context, items: Any, rank: int, axis: int) -> Any:
    if rank == 0 or not -rank <= axis < rank:
        return None
    if axis % rank == 0:
        return cx.call(cx, StaticValue(builtin_functions.concatenated), (items,), {})
    return cx.call(cx, StaticValue(builtin_functions.concatenated_along), (items, StaticValue(axis)), {})


def _hstacked(cx: Context, items: Any, rank: int, axis: int) -> Any:
    return _as_array(cx, items) if rank == 0 else _concatenated(cx, items, rank, 0 if rank == 1 else 1)


_joining(np.stack, _stacked)
_joining(np.vstack, _rows)
_joining(np.hstack, _hstacked)
_joining(np.column_stack, _columns)
_joining(np.concatenate, _concatenated)
