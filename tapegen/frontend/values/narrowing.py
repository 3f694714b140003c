"""Narrowing of unions: the kind that a union has in a branch, and the join after the branch.

Where a test determines the kind of a union, every variable that holds the union is narrowed to that kind.  After the
branches it is the union again; where a branch has assigned another kind, that kind is joined.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct
from tapegen.frontend.values.state import Bound, Choice, Maybe, Poison, Ref, RunList, State
from tapegen.frontend.values.type_sets import kinds_of
from tapegen.ir.nodes import Expr, Var
from tapegen.ir.types import Array, Scalar


def distinct(part: Any) -> Any:
    """An alternative as a distinct object, so that narrowing can be told from an assignment of the same value."""
    match part:
        case StaticValue(value):
            return StaticValue(value)
        case Leaf() | Struct():
            return dataclasses.replace(part)
        case Ref(cell):
            return Ref(cell)
    return part


def narrow(cx: Context, choice: Choice, first: bool) -> None:
    """Narrow a union to its kind on this path, in all variables that hold it.

    A container that no variable can hold on this path is dropped, unless the caller can see it.
    """
    state = cx.state
    for key, value in state.vars.items():
        if isinstance(value, Choice) and value.test == choice.test:
            state.vars[key] = value.first if first else value.second
    gone = choice.second if first else choice.first
    if not isinstance(gone, Ref) or gone.cell in cx.caller.owned:
        return
    if not any(ref.cell == gone.cell for ref in _refs(state)):
        state.cells.pop(gone.cell, None)


def _refs(state: State) -> Iterator[Ref]:
    """The containers that variables and containers hold."""
    work = [*state.vars.values(), *(cell.content for cell in state.cells.values())]
    while work:
        value = work.pop()
        match value:
            case Ref():
                yield value
            case Maybe(inner):
                work.append(inner)
            case Choice():
                work += [value.first, value.second]
            case Struct():
                work += value.children
            case RunList(item):
                work.append(item)
            case Leaf() | StaticValue() | Poison():
                pass
            case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
                work += [getattr(value, field.name) for field in dataclasses.fields(value)]
            case tuple() | list():
                work += value
            case dict():
                work += value.values()


def is_only_known(whole: Any, values: Sequence[Any]) -> bool:
    """Whether branches have only narrowed a union, not assigned it."""
    return isinstance(whole, Choice) and all(
        value is whole or value is whole.first or value is whole.second for value in values
    )


def unlike(a: Any, b: Any) -> bool:
    """Whether two kinds form a union; arrays that differ in dtype alone are converted instead."""
    return a != b and not (isinstance(a, tuple) and isinstance(b, tuple) and a[0] is b[0] is Array and a[1] == b[1])


def was_there(cx: Context, sides: Sequence[tuple[Any, State]], since: int | None) -> bool:
    """Whether values are one array that all paths can access, since it is older than the branches."""
    first = sides[0][0]
    if since is None or not isinstance(first, Leaf) or not isinstance(first.type, Array):
        return False
    array = cx.symbols.resolve(first.expr)
    return (
        isinstance(array, Var)
        and cx.age(array) <= since
        and all(isinstance(value, Leaf) and cx.symbols.resolve(value.expr) == array for value, _ in sides)
    )


def loses_writes(cx: Context, name: str, sides: Sequence[tuple[Any, State]]) -> bool:
    """Whether a joined scalar would miss writes into a zero-dimensional array."""
    if any(is_shared_number(cx, value, state) for value, state in sides):
        return True
    return any(
        isinstance(value, Leaf) and isinstance(value.type, Array) and _has_other_name(cx, name, value, state)
        for value, state in sides
    )


def may_be_array(cx: Context, value: Any) -> bool:
    """Whether a scalar may be a zero-dimensional array on some path."""
    return (
        isinstance(value, Leaf)
        and isinstance(value.type, Scalar)
        and any(isinstance(kind, Array) for kind in kinds_of(cx, value.expr))
    )


def is_shared_number(cx: Context, value: Any, state: State) -> bool:
    """Whether a scalar that may be a zero-dimensional array has an alias or a view."""
    if not may_be_array(cx, value):
        return False
    number = cx.symbols.resolve(value.expr)
    return sum(_same_memory(cx, number, other) for other in _values(state)) > 1


def _same_memory(cx: Context, number: Expr, other: Any) -> bool:
    """Whether a value is a scalar that may be a zero-dimensional array, or a view of that array."""
    if not isinstance(other, Leaf):
        return False
    held = cx.symbols.resolve(other.expr)
    if held == number or not isinstance(number, Var) or not isinstance(held, Var):
        return held == number
    places = cx.symbols.roots_of(number)
    return places is not None and not cx.symbols.viewed.isdisjoint(places) and cx.symbols.may_overlap(number, held)


def note_view_of_number(cx: Context, view: Any, number: Any) -> None:
    """Record that a result may be a view of a scalar that may be a zero-dimensional array."""
    if not may_be_array(cx, number) or not isinstance(view, Leaf) or not isinstance(view.expr, Var):
        return
    viewed = cx.symbols.resolve(number.expr)
    if isinstance(viewed, Var) and view.expr != viewed:
        cx.symbols.roots[view.expr] = cx.symbols.roots_of(viewed)
        cx.symbols.viewed |= cx.symbols.roots_of(viewed) or frozenset()
        if isinstance(view.type, Scalar):
            cx.symbols.kinds[view.expr] = kinds_of(cx, viewed)


def write_through_view(cx: Context, array: Var) -> None:
    """Poison scalars that may be a zero-dimensional array that is written through a view."""
    anywhere = (
        bool(cx.symbols.kinds and cx.heads) and cx.symbols.roots_of(array) is None
    )  # also a view that the loop makes later
    if not anywhere and not any(cx.symbols.may_overlap(number, array) for number in cx.symbols.viewed):
        return

    def outdated(value: Any) -> bool:
        return may_be_array(cx, value) and (anywhere or _same_memory(cx, array, value))

    state = cx.state
    state.vars.update({key: _without(cx, value, outdated) for key, value in state.vars.items()})
    for key, cell in state.cells.items():
        content = _without(cx, cell.content, outdated)
        if content is not cell.content:  # an unchanged cell keeps its identity
            state.cells[key] = dataclasses.replace(cell, content=content)


def _without(cx: Context, value: Any, outdated: Callable[[Any], bool]) -> Any:
    """A value with outdated items poisoned."""
    match value:
        case Leaf() if outdated(value):
            return Poison(
                "this may be an array without axes that has been changed through a view of it, or a number.",
                "Read the view, or convert the number before: float(...).",
            )
        case Maybe(inner):
            found: Any = _without(cx, inner, outdated)
            return value if found is inner else Maybe(found, value.bound)
        case Choice():
            first, second = _without(cx, value.first, outdated), _without(cx, value.second, outdated)
            same = first is value.first and second is value.second
            return value if same else dataclasses.replace(value, first=first, second=second)
        case Struct():
            children = tuple(_without(cx, child, outdated) for child in value.children)
            same = all(a is b for a, b in zip(children, value.children, strict=True))
            return value if same else dataclasses.replace(value, children=children, whole=None)
        case Bound() if any(map(outdated, (*value.args, *value.kwargs.values()))):
            return Poison("this holds a number that may be an array, which has been changed.", "Make it afterwards.")
        case RunList() if any(isinstance(kind, Array) for column in value.columns for kind in kinds_of(cx, column)):
            raise cx.refusal(
                NotDifferentiable,
                "a list may hold the array without axes that this changes, or a number.",
                "Keep numbers in the list: items.append(float(x)).",
            )
    return value


def _values(state: State) -> Iterator[Any]:
    """The values in variables and containers, with nested ones."""
    work = list(state.vars.values())
    for cell in state.cells.values():
        work += cell.content.children if isinstance(cell.content, Struct) else ()
    while work:
        value = work.pop()
        yield value
        if isinstance(value, Struct):
            work += value.children
        elif isinstance(value, Choice):
            work += [value.first, value.second]
        elif isinstance(value, Maybe):
            work.append(value.value)
        elif isinstance(value, Bound):
            work += [*value.args, *value.kwargs.values()]


def _has_other_name(cx: Context, name: str, value: Leaf, state: State) -> bool:
    array = cx.symbols.resolve(value.expr)
    assert isinstance(array, Var)
    if array not in cx.symbols.definitions or cx.symbols.roots_of(array) != frozenset({array}):
        return True
    others = State({key: held for key, held in state.vars.items() if key[1] != name}, state.cells)
    return any(
        isinstance(other, Leaf)
        and isinstance(other.expr, Var)
        and isinstance(other.type, Array)
        and cx.symbols.may_overlap(array, cx.symbols.resolve(other.expr))  # type: ignore[arg-type]
        for other in _values(others)
    )


def holders_of(state: State) -> dict[int, set[str]]:
    """The names of the variables that hold each container, directly or inside of others."""
    found: dict[int, set[str]] = {}

    def visit(value: Any, name: str) -> None:
        if isinstance(value, Ref):
            names = found.setdefault(value.cell, set())
            if name not in names:
                names.add(name)
                visit(state.cells[value.cell].content if value.cell in state.cells else None, name)
        elif isinstance(value, Maybe):
            visit(value.value, name)
        elif isinstance(value, Struct):
            for child in value.children:
                visit(child, name)

    for (_, name), value in state.vars.items():
        visit(value, name)
    return found
