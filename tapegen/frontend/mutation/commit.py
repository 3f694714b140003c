"""Commit of side effects: a call stores results into objects of the caller after the generated code has run.

The final values of everything that a program writes are results of the program; a `Mutation` says where they go.  A
call applies them once, however often it runs the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen.errors import Span
from tapegen.frontend.values.pytree import Slot, StaticValue, Struct, children_of, rebuild

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Theirs:
    """A container of the caller, by reference."""

    find: Callable[[Arguments], Any]


@dataclass(frozen=True, slots=True, eq=False)
class NewContainer:
    """A container that the program makes; `number` identifies it, since it may be stored in several places."""

    number: int
    struct: Struct


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A list that grows at run time; the Slots of its columns hold the leaves of its items."""

    number: int
    item: Any
    columns: tuple[Slot, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """`first` where `test` holds, else `second`; `kinds` as in `Choice`."""

    test: Any
    first: Any
    second: Any
    kinds: tuple[Any, Any] = (None, None)


@dataclass(frozen=True, slots=True, eq=False)
class Mutation:
    """The stores into one container or variable.

    Attributes
    ----------
    find : callable
        Finds the container among the arguments of a call.
    kind : str
        "object", "dict", "items" (some of a list), "list" (all of it), "tail" (items that are appended) or "variable".
    items : tuple of (object, object)
        Keys or attribute names, and the values stored there; one pair for a list, a tail or a variable.
    removed : tuple
        Keys that are deleted.
    set_variable : callable or None
        Stores into a variable.
    names : tuple of str
        The user's expressions for the stored locations, for messages and docstrings.
    place : tuple
        The identity of the container in lowering.
    span : Span or None
        The function.
    """

    find: Callable[[Arguments], Any]
    kind: str
    items: tuple[tuple[Any, Any], ...]
    removed: tuple[Any, ...]
    names: tuple[str, ...]
    place: tuple[Any, ...]
    set_variable: Callable[[Any], None] | None = None
    span: Span | None = None

    def slots(self) -> Iterator[tuple[Any, int]]:
        """The keys, and the positions of the results that are stored under them."""
        for key, template in self.items:
            for slot in slots_in(template):
                yield key, slot.index


def slots_in(template: Any) -> Iterator[Slot]:
    """The Slots in a stored value."""
    match template:
        case Slot():
            yield template
        case Struct():
            for child in template.children:
                yield from slots_in(child)
        case NewContainer():
            yield from slots_in(template.struct)
        case Grown():
            yield from template.columns
        case Either():
            for part in (template.test, template.first, template.second):
                yield from slots_in(part)


def apply(
    mutations: Sequence[Mutation], arguments: Arguments, values: Sequence[Any], given: Sequence[Any] = ()
) -> None:
    """Store results into the caller's objects.

    Parameters
    ----------
    mutations : sequence of Mutation
        In any order: all values are looked up before the first one is stored.
    arguments : mapping
        The arguments of the call.
    values : sequence
        The results of the program.
    given : sequence
        The flat arguments: an array that the program only passes on is stored as the object that it is.
    """
    arrays = [item for item in given if isinstance(item, np.ndarray)]
    taken = [_same_object(value, arrays) for value in values]
    made: dict[int, Any] = {}
    found = [
        (
            mutation,
            mutation.find(arguments) if mutation.set_variable is None else None,
            [(key, _value(template, arguments, taken, made)) for key, template in mutation.items],
        )
        for mutation in mutations
    ]
    for mutation, owner, items in found:
        _store(mutation, owner, items)


def _store(mutation: Mutation, owner: Any, items: list[tuple[Any, Any]]) -> None:
    match mutation.kind:
        case "variable":
            assert mutation.set_variable is not None
            mutation.set_variable(items[0][1])
        case "list":
            owner[:] = items[0][1]
        case "tail":
            owner.extend(items[0][1])
        case "dict" | "items":
            for key in mutation.removed:
                del owner[key]
            for key, value in items:
                owner[key] = value
        case "object":
            for key in mutation.removed:
                delattr(owner, key)
            for key, value in items:
                setattr(owner, key, value)


def _same_object(value: Any, arrays: Sequence[np.ndarray]) -> Any:
    """The caller's own array for one that the program only passes on, which compiled code returns as another object."""
    if not isinstance(value, np.ndarray):
        return value
    for array in arrays:
        same = value.shape == array.shape and value.strides == array.strides and value.dtype == array.dtype
        if value is array or (same and value.size and value.ctypes.data == array.ctypes.data):
            return array
    return value


def _value(template: Any, arguments: Arguments, values: Sequence[Any], made: dict[int, Any]) -> Any:
    match template:
        case Slot(index):
            return values[index]
        case StaticValue(value):
            return value
        case Theirs(find):
            return find(arguments)
        case Struct():
            return rebuild(template, [_value(child, arguments, values, made) for child in template.children])
        case NewContainer(number, struct):
            if number not in made:
                made[number] = rebuild(struct, [_value(child, arguments, values, made) for child in struct.children])
            return made[number]
        case Grown(number, item, columns):
            if number not in made:
                rows = zip(*(values[slot.index] for slot in columns), strict=True)
                made[number] = [_item(item, iter(row)) for row in rows]
            return made[number]
        case Either(test, first, second):
            chosen = first if _value(test, arguments, values, made) else second
            return _value(chosen, arguments, values, made)
    raise AssertionError(template)


def _item(template: Any, leaves: Iterator[Any]) -> Any:
    """An item of a growing list."""
    if isinstance(template, Struct):
        return rebuild(template, [_item(child, leaves) for child in template.children])
    return next(leaves) if isinstance(template, Slot) else template.value


# ---- restoring -----------------------------------------------------------------------------------------------------


def before(mutations: Sequence[Mutation], arguments: Arguments) -> list[Callable[[], None]]:
    """A function that restores the caller's objects to their current contents."""
    return [_undo(mutation, arguments) for mutation in mutations]


def _undo(mutation: Mutation, arguments: Arguments) -> Callable[[], None]:
    if mutation.set_variable is not None:
        setter = mutation.set_variable
        try:
            value = mutation.find(arguments)
        except (NameError, KeyError, AttributeError):
            return lambda: None
        return lambda: setter(value)
    owner = mutation.find(arguments)
    if mutation.kind in ("list", "items", "tail"):
        items = list(owner)
        return lambda: owner.__setitem__(slice(None), items)
    if mutation.kind == "dict":
        pairs = dict(owner)
        return lambda: (owner.clear(), owner.update(pairs))[1]
    struct = children_of(owner)
    assert struct is not None
    kept = dict(zip(struct.keys, struct.children, strict=True))

    def put_back() -> None:
        now = children_of(owner)
        assert now is not None
        for key in now.keys:
            if key not in kept:
                delattr(owner, key)
        for key in (*(key for key, _ in mutation.items), *mutation.removed):
            if key in kept:
                setattr(owner, key, kept[key])

    return put_back


__all__ = ["Either", "Grown", "Mutation", "NewContainer", "Theirs", "apply", "before", "slots_in"]
