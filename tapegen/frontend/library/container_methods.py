"""Methods of lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key, partial
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.handlers import method
from tapegen.frontend.expressions.expressions import spread
from tapegen.frontend.expressions.unions import quietly
from tapegen.frontend.library.sequences import pairs_of
from tapegen.frontend.mutation.written_captures import write_captured
from tapegen.frontend.templates import builtin_functions
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.dynamic_lists import append, pop, widen_cell
from tapegen.frontend.values.materialize import describe, run_list_of, static, struct_of
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct, dict_of, list_of, with_items
from tapegen.frontend.values.state import Captured, Ref, View, known_value
from tapegen.ir.types import Array


@method("list", "append", takes="object, /")
def _append(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, value = args
    append(cx, _own(cx, owner), value)
    return StaticValue(None)


def _own(cx: Context, owner: Any) -> Ref:
    if isinstance(owner, Captured):
        write_captured(cx, owner)
    if isinstance(owner, Ref):
        return owner
    raise cx.refusal(
        NotDifferentiable, f"this changes {describe(cx, owner)}, which is not part of the result.", "Build a new list."
    )


@method("list", "extend", takes="iterable, /")
def _extend(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, values = args
    is_array = isinstance(values, Leaf) and isinstance(values.type, Array)
    if is_array or run_list_of(cx, values) is not None:
        cx.call(cx, StaticValue(builtin_functions.extended), (_own(cx, owner), values), {})
        return StaticValue(None)
    for value in spread(cx, values):
        append(cx, _own(cx, owner), value)
    return StaticValue(None)


@method("list", "pop", takes="index=-1, /")
def _pop(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, *position = args
    content = struct_of(cx, owner)
    if position and content is not None and content.children and known_value(position[0]) is UNKNOWN:
        widen_cell(cx, _own(cx, owner).cell, [(content, cx.state)])
    if position and run_list_of(cx, owner) is not None and known_value(position[0]) != -1:
        return cx.call(cx, StaticValue(builtin_functions.taken), (_own(cx, owner), *position), {})
    return pop(cx, _own(cx, owner), *position)


@method("list", "sort", takes="*, key=None, reverse=False")
def _sort_list(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    content = struct_of(cx, _own(cx, args[0]))
    key = kwargs.get("key", StaticValue(None))
    reverse = bool(static(cx, kwargs.get("reverse", StaticValue(False)), "'reverse'"))
    ordered = None if content is None else _in_known_order(cx, content.children, key, reverse)
    if ordered is not None:
        cx.set_cell(args[0], list_of(ordered))
        return StaticValue(None)
    if content is not None and content.children:  # the positions are computed
        widen_cell(cx, args[0].cell, [(content, cx.state)])
    cx.call(cx, StaticValue(builtin_functions.put_in_order), (args[0], key, StaticValue(reverse)), {})
    return StaticValue(None)


class _Undecided(Exception):
    """The order of two values is not known at compile time."""


def _in_known_order(cx: Context, items: Sequence[Any], key: Any, reverse: bool) -> list[Any] | None:
    """The items in the order of `sorted`, if known items or keys determine it at compile time."""
    keys, saved = list(items), cx.state.copy()
    if known_value(key) is not None:
        keys = [quietly(cx, partial(cx.call, cx, key, (item,), {})) for item in items]

    def compared(a: int, b: int) -> int:
        return -1 if _before(cx, keys[a], keys[b]) else 0

    try:
        order = sorted(range(len(items)), key=cmp_to_key(compared), reverse=reverse)
    except _Undecided:
        cx.state = saved
        return None
    except TypeError as error:
        cx.raise_(TypeError, str(error))
    return [items[k] for k in order]


def _before(cx: Context, a: Any, b: Any) -> bool:
    """Whether `a < b`: tuples and lists are compared up to the first difference."""
    known, other = known_value(a), known_value(b)
    if known is not UNKNOWN and other is not UNKNOWN:
        return bool(known < other)
    first, second = struct_of(cx, a), struct_of(cx, b)
    if first is None or second is None or first.kind != second.kind or first.kind == "dict":
        raise _Undecided
    for x, y in zip(first.children, second.children, strict=False):
        known, other = known_value(x), known_value(y)
        if known is UNKNOWN or other is UNKNOWN:
            raise _Undecided
        if known != other:
            return bool(known < other)
    return len(first.children) < len(second.children)


@method("list", "insert", takes="index, object, /")
def _insert(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, position, value = args
    if run_list_of(cx, owner) is not None:
        return cx.call(cx, StaticValue(builtin_functions.put_before), (_own(cx, owner), position, value), {})
    children = list(_children(cx, owner, "insert"))
    children.insert(static(cx, position, "the position"), value)
    cx.set_cell(_own(cx, owner), list_of(children))
    return StaticValue(None)


@method("list", "reverse", takes="")
def _reverse(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    if run_list_of(cx, args[0]) is not None:
        return cx.call(cx, StaticValue(builtin_functions.turned_round), (_own(cx, args[0]),), {})
    cx.set_cell(_own(cx, args[0]), list_of(_children(cx, args[0], "reverse")[::-1]))
    return StaticValue(None)


@method("list", "clear", takes="")
def _clear(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    if run_list_of(cx, args[0]) is not None:
        return cx.call(cx, StaticValue(builtin_functions.emptied), (_own(cx, args[0]),), {})
    cx.set_cell(_own(cx, args[0]), list_of(()))
    return StaticValue(None)


@method("list", "copy", takes="")
def _copy(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return cx.call(cx, StaticValue(list), (args[0],), {})


def _children(cx: Context, owner: Any, name: str) -> tuple[Any, ...]:
    content = struct_of(cx, owner)
    if content is None:
        raise cx.refusal(NotDifferentiable, f"'{name}' of a list that grows is not supported.", "Use append and pop.")
    return content.children


@method("list", "remove", takes="value, /")
def _remove(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, value = args
    _pop(cx, [owner, _first_place(cx, _own(cx, owner), value, "list.remove(x): x not in list")], {}, None)
    return StaticValue(None)


@method("list", "index", takes="value, /")
def _index(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, value = args
    return _first_place(cx, owner, value, None)


@method("tuple", "index", takes="value, /")
def _tuple_index(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, value = args
    return _first_place(cx, owner, value, "tuple.index(x): x not in tuple")


def _first_place(cx: Context, owner: Any, value: Any, absent: str | None) -> Any:
    """The first position of a value; `absent` is Python's message for a missing one, if that names no value."""
    content = struct_of(cx, owner)
    known = [UNKNOWN] if content is None else [known_value(child) for child in (*content.children, value)]
    if UNKNOWN not in known:
        if known[-1] not in known[:-1]:
            cx.raise_(ValueError, absent or f"{known[-1]!r} is not in list")
        return StaticValue(known.index(known[-1]))
    return cx.call(cx, StaticValue(builtin_functions.place_of), (owner, value, StaticValue(absent)), {})


@method("list", "count", takes="value, /")
@method("tuple", "count", takes="value, /")
def _count(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return cx.call(cx, StaticValue(builtin_functions.count_of), args, {})


@method("tuple", "_replace", takes="**fields")
def _replace(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    content = struct_of(cx, args[0])
    assert content is not None
    for name, value in kwargs.items():
        if name not in content.keys:
            cx.raise_(ValueError, f"Got unexpected field names: ['{name}']")
        content = content.with_child(name, value)
    return content


@method("tuple", "_asdict", takes="")
def _asdict(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    content = struct_of(cx, args[0])
    assert content is not None
    return cx.new_cell(dict_of(zip(content.keys, content.children, strict=True)))


def _dict(cx: Context, owner: Any) -> Struct:
    content = struct_of(cx, owner)
    assert content is not None
    return content


@method("dict", "keys", takes="")
def _keys(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return View(args[0], "keys")


@method("dict", "values", takes="")
def _values(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return View(args[0], "values")


@method("dict", "items", takes="")
def _items(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return View(args[0], "items")


@method("dict", "get", takes="key, default=None, /")
def _get(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, key, *default = args
    content, known = _dict(cx, owner), static(cx, key, "a key of a dict")
    if known in content.keys:
        return content.get(known)
    return default[0] if default else StaticValue(None)


@method("dict", "copy", takes="")
def _copy_dict(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    return cx.new_cell(_dict(cx, args[0]))


@method("dict", "update", takes="other=(), /, **items")
def _update(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, *others = args
    content = _dict(cx, owner)
    for other in others:
        content = with_items(content, pairs_of(cx, other))
    cx.set_cell(_own(cx, owner), with_items(content, kwargs.items()))
    return StaticValue(None)


@method("dict", "setdefault", takes="key, default=None, /")
def _setdefault(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, key, *default = args
    content, known = _dict(cx, owner), static(cx, key, "a key of a dict")
    if known not in content.keys:
        content = content.with_child(known, default[0] if default else StaticValue(None))
        cx.set_cell(_own(cx, owner), content)
    return content.get(known)


@method("dict", "pop", takes="key, default=None, /")
def _pop_key(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    owner, key, *default = args
    content, known = _dict(cx, owner), static(cx, key, "a key of a dict")
    if known not in content.keys:
        if default:
            return default[0]
        cx.raise_(KeyError, str(known))
    rest = [(k, child) for k, child in zip(content.keys, content.children, strict=True) if k != known]
    cx.set_cell(_own(cx, owner), dict_of(rest, content.cls))
    return content.get(known)
