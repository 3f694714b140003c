"""Containers that an outlined call changes: their contents are results of the outlined program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.frontend.mutation.commit import Either, Grown, slots_in
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import check_keys, expr_of, run_list_of
from tapegen.frontend.values.pytree import Leaf, Slot, StaticValue, Struct
from tapegen.frontend.values.state import Choice, Ref, RunList
from tapegen.ir.nodes import Const, Expr, Var


def changes_of(cx: Context, cells: Mapping[int, Any], exprs: list[Expr]) -> dict[int, Any]:
    """The changed containers of the surrounding program; new values are added to the results in `exprs`.

    Parameters
    ----------
    cx : Context
        In the state after the call.
    cells : mapping
        The contents before the call.
    exprs : list of Expr
        The results of the call.
    """
    found: dict[int, Any] = {}
    for number, before in cells.items():
        content = cx.state.cells[number].content
        if content is before:
            continue
        if isinstance(content, RunList) and isinstance(before, Struct):
            exprs.extend(content.columns)
            slots = tuple(Slot(k) for k in range(len(exprs) - len(content.columns), len(exprs)))
            found[number] = Grown(number, content.item, slots)
            continue
        if isinstance(content, RunList) or isinstance(before, RunList):
            raise cx.refusal(
                NotDifferentiable,
                "the function makes a list of the surrounding program grow, an unknown number of times.",
                "Return what is new instead.",
            )
        check_keys(cx, number, content)
        kept = {id(child) for child in before.children}
        children = tuple(
            child if id(child) in kept else _template(cx, child, cells, exprs) for child in content.children
        )
        found[number] = dataclasses.replace(content, children=children, whole=None)
    return found


def _template(cx: Context, value: Any, cells: Mapping[int, Any], exprs: list[Expr]) -> Any:
    match value:
        case Leaf():
            expr = expr_of(cx, value)
            exprs.append(expr if isinstance(expr, (Var, Const)) else cx.atom(expr, "stored"))
            return Slot(len(exprs) - 1)
        case Choice(test, first, second):
            tested = _template(cx, Leaf(test), cells, exprs)
            chosen, other = (_template(cx, part, cells, exprs) for part in (first, second))
            return Either(tested, chosen, other, value.kinds)
        case StaticValue():
            return value
        case Ref(cell) if cell in cells:
            return value
        case Ref(cell) if isinstance(content := cx.state.cells[cell].content, Struct):
            value = content
    if isinstance(value, Struct):
        children = tuple(_template(cx, child, cells, exprs) for child in value.children)
        return dataclasses.replace(value, children=children, whole=None)
    raise cx.refusal(
        NotDifferentiable,
        "the function changes a list, dict or object of the surrounding function.",
        "Return what is new instead.",
    )


def slots_of(changes: Mapping[int, Any]) -> Iterator[int]:
    """The positions of the results that are contents of containers."""
    for content in changes.values():
        if isinstance(content, Grown):
            yield from (slot.index for slot in content.columns)
        else:
            yield from (slot.index for slot in slots_in(content))


def apply_changes(cx: Context, changes: Mapping[int, Any], value_of: Callable[[int], Any]) -> None:
    """Update the containers of the surrounding program from the results of a call."""
    for number, content in changes.items():
        if isinstance(content, Grown):
            lists = [run_list_of(cx, value_of(slot.index)) for slot in content.columns]
            columns = tuple(found.columns[0] for found in lists if found is not None)
            cx.set_cell(Ref(number), RunList(content.item, columns))
            continue
        children = tuple(_restored(cx, child, value_of) for child in content.children)
        cx.set_cell(Ref(number), dataclasses.replace(content, children=children))


def _restored(cx: Context, template: Any, value_of: Callable[[int], Any]) -> Any:
    if isinstance(template, Slot):
        return value_of(template.index)
    if isinstance(template, Either):
        first, second = (_restored(cx, part, value_of) for part in (template.first, template.second))
        return Choice(expr_of(cx, value_of(template.test.index)), first, second, template.kinds)
    if isinstance(template, Struct):
        children = tuple(_restored(cx, child, value_of) for child in template.children)
        made = dataclasses.replace(template, children=children)
        return made if made.kind == "tuple" else cx.new_cell(made)
    return template


__all__ = ["apply_changes", "changes_of", "slots_of"]
