"""Dynamic lists: lists that grow at run time.

A list is a sequence of known items until paths disagree about its length (an `append` in a loop or a branch).  Then
`Widen` requests a run-time list in its place, made before the statement at which the paths diverge.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.frontend.mutation.caller_objects import append_only, note_key
from tapegen.frontend.values.context import OF_GROWING_LIST, Context
from tapegen.frontend.values.materialize import describe, expr_of, operand, run_list_of, static, struct_of
from tapegen.frontend.values.phi import Merge
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct, list_of
from tapegen.frontend.values.state import Cell, Choice, Poison, Ref, RunList, State, known_value
from tapegen.frontend.values.type_join import converted
from tapegen.frontend.values.type_sets import note_kinds
from tapegen.ir import intrinsics
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Const, Expr, Var
from tapegen.ir.types import INT, ListOf, Scalar

ONE_KIND = "Convert what differs: float(x), so that all items are of one kind."

Sides = Sequence[tuple[Any, State]]


class Widen(Exception):
    """Signal: lists have different lengths on different paths; maps each cell to its contents on these paths."""

    def __init__(self, lists: Mapping[int, Sides]) -> None:
        super().__init__(lists)
        self.lists = lists


def needs_widening(sides: Sides) -> bool:
    """Whether the contents of one container are lists of different lengths."""
    contents = [content for content, _ in sides]
    if any(isinstance(content, RunList) for content in contents):
        return any(content != contents[0] for content in contents)
    return contents[0].kind == "list" and any(content.keys != contents[0].keys for content in contents)


def widen_cell(cx: Context, cell: int, sides: Sides, loop: Any = None) -> None:
    """Convert the list to a run-time list here; `loop` is the `for` that makes it grow."""
    content = cx.state.cells[cell].content
    if isinstance(content, RunList):
        raise cx.refusal(
            NotDifferentiable,
            "the items of a list change their type while it grows.",
            "Put the first item of the final type (0.0 instead of 0) into it from the start.",
        )
    frozen = cx.state.cells[cell].frozen
    if frozen:
        refusal = cx.refusal(NotDifferentiable, frozen, "Build a new list and return it.")
        cx.loop_refused(cx.containers.made_by.get(cell), refusal)
    merge = Merge(cx, cx.state.copy(), State({}, {}), fresh=True)
    items: list[tuple[Any, State]] = []
    for side, state in sides:
        if isinstance(side, RunList):
            items.append((side.item, state))
        else:
            items.extend((child, state) for child in side.children)
    template = merge.template("item", items)
    try:
        made = new_dynamic_list(cx, template, content.children, _name_of(cx, cell), loop)
    except NotDifferentiable as error:  # unrolling does not help where an item is a union in each iteration
        cx.loop_refused(None if any(isinstance(item, Choice) for item, _ in items) else loop, error)
    cx.state.cells[cell] = Cell(made)


def _name_of(cx: Context, cell: int) -> str:
    """The user's name of a list that is about to grow: a variable, an attribute, or a key of a dict."""
    structs = [found.content for found in cx.state.cells.values() if isinstance(found.content, Struct)]
    members = (pair for each in structs for pair in zip(each.keys, each.children, strict=False))
    named = itertools.chain(((key[1], value) for key, value in cx.state.vars.items()), members)
    names = (name for name, value in named if isinstance(value, Ref) and value.cell == cell)
    return next((name for name in names if isinstance(name, str) and name.isidentifier()), "items")


def new_dynamic_list(
    cx: Context, template: Any, children: Sequence[Any] = (), hint: str = "items", loop: Any = None
) -> RunList:
    """A new run-time list whose items look like `template`."""
    leaves = list(_leaves(cx, template))
    if not leaves:
        raise cx.refusal(NotDifferentiable, "a list that grows must hold numbers or arrays.", "Use a dict or a tuple.")
    columns = []
    for child in children:
        cx.note_copy(child, OF_GROWING_LIST, loop)
    for k, leaf in enumerate(leaves):
        items = [list(_leaves(cx, child))[k] for child in children]
        exprs = tuple(cx.atom(converted(expr_of(cx, item), leaf.type)) for item in items)
        column = cx.assign(hint, Call(intrinsics.new_list, exprs, (), ListOf(leaf.type)))
        note_kinds(cx, column, (leaf.expr, *(expr_of(cx, item) for item in items)))
        columns.append(column)
    return RunList(_template(cx, template), tuple(columns), loop)


def _leaves(cx: Context, value: Any) -> list[Leaf]:
    """Leaves of an item; literal scalars count as leaves."""
    if isinstance(value, Leaf):
        return [value]
    if isinstance(value, StaticValue):
        return [Leaf(Const(value.value))] if type(value.value) in (int, float, bool) else []
    if isinstance(value, Poison):
        kinds_of_numbers = value.advice.startswith("Convert")  # the advice mentions a name of only one item
        advice = ONE_KIND if kinds_of_numbers else value.advice
        raise cx.refusal(NotDifferentiable, f"the items of a list differ: {value.reason}", advice)
    content = struct_of(cx, value)
    if content is None:
        raise cx.refusal(
            NotDifferentiable,
            f"{describe(cx, value)} cannot be an item of a growing list.",
            "Append numbers or arrays.",
        )
    return [leaf for child in content.children for leaf in _leaves(cx, child)]


def _template(cx: Context, value: Any) -> Any:
    """An item without identities: items of run-time lists cannot be changed in place."""
    content = struct_of(cx, value)
    if content is None:
        return value
    return dataclasses.replace(content, children=tuple(_template(cx, child) for child in content.children))


# ---- list operations -----------------------------------------------------------------------------------------------


def append(cx: Context, ref: Ref, value: Any) -> None:
    """`list.append(value)`."""
    append_only(cx, ref)
    content = cx.state.cells[ref.cell].content
    if isinstance(content, Struct):
        keys = tuple(range(len(content.children) + 1))
        cx.set_cell(ref, dataclasses.replace(content, keys=keys, children=(*content.children, value)))
        return
    cx.check_change(ref)
    cx.containers.resized[ref.cell] += 1
    for column, expr in zip(content.columns, _columns(cx, content, value), strict=True):
        cx.effect(Call(intrinsics.append, (column, expr), (), column.type))


def _columns(cx: Context, run_list: RunList, value: Any) -> list[Expr]:
    cx.note_copy(value, OF_GROWING_LIST, run_list.loop)
    wanted = _leaves(cx, run_list.item)
    given = _leaves(cx, value)
    differ = cx.refusal(NotDifferentiable, "the items of a list differ in kind.", "Append items of one kind.")
    if len(wanted) != len(given):
        cx.loop_refused(run_list.loop, differ)
    exprs = [expr_of(cx, leaf) for leaf in given]
    for leaf, expr in zip(wanted, exprs, strict=True):
        merged = Merge(cx, cx.state, cx.state, fresh=True).template("item", [(leaf, cx.state), (Leaf(expr), cx.state)])
        if isinstance(merged, Choice):  # a scalar and an array, arrays of different ranks
            cx.loop_refused(run_list.loop, differ)
        if isinstance(merged, Poison) or getattr(merged.type, "dtype", None) != getattr(leaf.type, "dtype", None):
            raise cx.refusal(NotDifferentiable, "an item has another type than those that the list holds.", ONE_KIND)
    for column, leaf, expr in zip(run_list.columns, wanted, exprs, strict=True):
        note_kinds(cx, column, (leaf.expr, expr))
    return [cx.atom(converted(expr, leaf.type)) for leaf, expr in zip(wanted, exprs, strict=True)]


def _read(cx: Context, column: Var, call: Call, hint: str) -> Leaf:
    """Bind an item that has been read to a variable."""
    kinds = cx.symbols.kinds.get(column)
    if kinds is None:
        return Leaf(cx.assign(hint, call))
    if isinstance(call.type, Scalar) and not all(isinstance(kind, Scalar) and kind.python for kind in kinds):
        call = dataclasses.replace(call, type=Scalar(call.type.dtype, python=False))
    var = cx.assign(hint, call)
    cx.symbols.kinds[var] = kinds
    return Leaf(var)


def pop(cx: Context, ref: Ref, position: Any = None) -> Any:
    """`list.pop()`."""
    content = cx.state.cells[ref.cell].content
    known = -1 if position is None else known_value(position)
    if isinstance(content, Struct):
        if known is UNKNOWN:
            raise cx.refusal(NotDifferentiable, "pop at a computed position is not supported.", "Use pop().")
        if not -len(content.children) <= known < len(content.children):
            cx.raise_(IndexError, "pop from empty list" if not content.children else "pop index out of range")
        children = list(content.children)
        value = children.pop(known)
        cx.set_cell(ref, dataclasses.replace(content, keys=tuple(range(len(children))), children=tuple(children)))
        return value
    if known != -1:
        raise cx.refusal(NotDifferentiable, "pop from the middle of a growing list is not supported.", "Use pop().")
    cx.check_change(ref)
    cx.containers.resized[ref.cell] += 1
    columns = [
        _read(cx, column, Call(intrinsics.pop, (column,), (), column.type.item), "item")  # type: ignore[union-attr]
        for column in content.columns
    ]
    cx.effects += 1
    return _item_of(cx, content, columns)


def item(cx: Context, run_list: RunList, index: Any, hint: str | None = None) -> Any:
    """`list[index]` of a run-time list."""
    position = expr_of(cx, index)
    leaves = []
    for column in run_list.columns:
        call = Call(intrinsics.item, (column, position), (), column.type.item)  # type: ignore[union-attr]
        leaves.append(Leaf(call) if cx.whole else _read(cx, column, call, hint or TEMPORARY))
    return _item_of(cx, run_list, leaves)


def _item_of(cx: Context, run_list: RunList, leaves: Sequence[Leaf]) -> Any:
    rest = iter(leaves)

    def build(template: Any) -> Any:
        if isinstance(template, Leaf):
            return next(rest)
        if isinstance(template, Struct):
            made = dataclasses.replace(template, children=tuple(build(child) for child in template.children))
            if made.kind == "tuple":
                return made
            ref = cx.new_cell(made, OF_GROWING_LIST)
            cx.containers.made_by[ref.cell] = run_list.loop
            return ref
        return template

    return build(run_list.item)


def set_item(cx: Context, ref: Ref, index: Any, value: Any) -> None:
    """`list[index] = value`."""
    content = cx.state.cells[ref.cell].content
    if isinstance(content, Struct):
        known = static(cx, index, "the index into a list of known length")
        if not -len(content.children) <= known < len(content.children):
            cx.raise_(IndexError, "list assignment index out of range")
        note_key(cx, ref, known % len(content.children))
        cx.set_cell(ref, content.with_child(known % len(content.children), value))
        return
    cx.check_change(ref)
    position = operand(cx, index, "k")
    for column, expr in zip(content.columns, _columns(cx, content, value), strict=True):
        cx.effect(Call(intrinsics.set_item, (column, position, expr), (), column.type))


def set_slice(cx: Context, ref: Ref, part: slice, items: Sequence[Any]) -> None:
    """`list[part] = items` of a list of known length."""
    content = cx.state.cells[ref.cell].content
    assert isinstance(content, Struct)
    children = list(content.children)
    try:
        children[part] = items
    except ValueError as error:
        cx.raise_(ValueError, f"{error}")
    for k in range(*part.indices(len(content.children))):
        note_key(cx, ref, k)
    cx.set_cell(ref, list_of(children))


def length(cx: Context, value: Any) -> Any:
    """`len(list)` of a run-time list, or None."""
    run_list = run_list_of(cx, value)
    return None if run_list is None else Leaf(Call(len, (run_list.columns[0],), (), INT))
