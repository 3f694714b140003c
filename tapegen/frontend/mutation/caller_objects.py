"""Objects of the caller that a program writes, as containers: `self.nfev += 1`, `history.append(x)`, `global n`.

During lowering each of these objects is a container like the program's own: later reads see earlier writes, branches
and loops merge it.  The call stores what differs at the end, once, after the generated code has run (`commit`).

An object that is reached through a global or closure variable is only expanded as far as it is read.  Where it turns
out to be written, lowering restarts with the object as a container (`Restart`).  A list that is only appended to starts
empty (only its *tail* is known), so that a program does not depend on its length.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tapegen.frontend.values.context import Context, Restart
from tapegen.frontend.values.pytree import StaticValue, Struct, children_of
from tapegen.frontend.values.state import Captured, Ref

Arguments = Mapping[str, Any]
Path = tuple[Any, ...]


class OtherForm(Exception):
    """A list among the arguments must be expanded (`is_read`), or only its tail may be known."""

    __tapegen_of_program__ = True  # a control signal: the arguments are described again

    def __init__(self, place: Path, *, is_read: bool) -> None:
        super().__init__(place)
        self.place, self.is_read = place, is_read


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable outside of the function: a global, one of an enclosing function, an attribute of a class or function.

    Attributes
    ----------
    getter, setter : callable
        Read and write it.  `getter` raises NameError, KeyError or AttributeError where it is not bound.
    """

    name: str
    path: Any
    getter: Callable[[], Any]
    setter: Callable[[Any], None]


@dataclass(slots=True)
class MutationFacts:
    """Facts about the caller's objects that are kept between lowering attempts.

    Attributes
    ----------
    containers : dict
        Objects that are written, by identity.
    variables : dict
        Variables that are written, by their path.
    numbers : set
        Keys of written objects whose integers change between calls, so that they are arguments.
    read : set
        Lists, by location, whose items are read.
    """

    containers: dict[int, Captured] = field(default_factory=dict)
    variables: dict[Any, Variable] = field(default_factory=dict)
    numbers: set[Any] = field(default_factory=set)
    read: set[Any] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Owned:
    """A container of the caller.

    Attributes
    ----------
    find : callable
        Finds it among the arguments of a call.
    name : str
        The user's expression for it.
    place : tuple
        Its location: an argument and the path from there, or how it was captured.
    initial : Struct
        Its contents on entry; of a tail, nothing.
    is_tail : bool
        Whether it is a list of which only appended items are known.
    variable : Variable or None
        Set if the container represents a variable.
    """

    find: Callable[[Arguments], Any]
    name: str
    place: Path
    initial: Struct
    is_tail: bool = False
    variable: Variable | None = None


@dataclass(slots=True)
class CallerState:
    """The containers of the caller in one lowering attempt.

    Attributes
    ----------
    owned : dict
        By cell.
    tails : frozenset of tuple
        Lists among the arguments that are only appended to.
    containers, variables : dict
        The cells of captured objects and of variables, by identity and by path.
    places : dict
        Path of a captured item of a container -> location of the container, and key.
    """

    owned: dict[int, Owned] = field(default_factory=dict)
    tails: frozenset[Path] = frozenset()
    containers: dict[int, Ref] = field(default_factory=dict)
    variables: dict[Any, Ref] = field(default_factory=dict)
    places: dict[Any, Path] = field(default_factory=dict)


# ---- arguments -----------------------------------------------------------------------------------------------------


def adopt_argument(cx: Context, value: Any, argument: str, path: Path = (), name: str = "") -> Any:
    """An abstract argument as a value of the program: its containers are the caller's."""
    if not isinstance(value, Struct):
        return value
    name = name or argument
    children = tuple(
        adopt_argument(cx, child, argument, (*path, key), part_name(value, name, key))
        for key, child in zip(value.keys, value.children, strict=True)
    )
    made = dataclasses.replace(value, children=children)
    if made.kind == "tuple":
        return made
    place = ("argument", argument, *path)
    return own(cx, made, partial(_follow, argument, path), name, place, is_tail=place in cx.caller.tails)


def part_name(owner: Struct, name: str, key: Any) -> str:
    """The user's expression for an item of a container."""
    if owner.kind == "object" or hasattr(owner.cls, "_fields"):
        return f"{name}.{key}"
    return f"{name}[{key!r}]"


def _follow(argument: str, path: Path, arguments: Arguments) -> Any:
    value = arguments[argument]
    for key in path:
        struct = children_of(value)
        assert struct is not None
        value = struct.get(key)
    return value


def own(
    cx: Context,
    content: Struct,
    find: Callable[[Arguments], Any],
    name: str,
    place: Path,
    *,
    is_tail: bool = False,
    variable: Variable | None = None,
) -> Ref:
    """The cell of a container of the caller."""
    if is_tail:
        content = Struct("list", (), (), content.cls)
    ref = cx.new_cell(content)
    cx.caller.owned[ref.cell] = Owned(find, name, place, content, is_tail, variable)
    return ref


# ---- writing -------------------------------------------------------------------------------------------------------


def note_key(cx: Context, ref: Ref, key: Any) -> None:
    """Record a store to an item: an integer there on entry becomes an argument, as it changes between calls."""
    owned = cx.caller.owned.get(ref.cell)
    if owned is None or owned.place[0] != "captured" or key not in owned.initial.keys:
        return
    before = owned.initial.get(key)
    number = (owned.place[1], key)
    if isinstance(before, StaticValue) and type(before.value) is int and number not in cx.recursion.written.numbers:
        cx.recursion.written.numbers.add(number)
        raise Restart


def is_tail(cx: Context, value: Any) -> bool:
    """Whether a value is a list of the caller of which only appended items are known."""
    owned = cx.caller.owned.get(value.cell) if isinstance(value, Ref) else None
    return owned is not None and owned.is_tail


def look_into(cx: Context, value: Any) -> None:
    """Record a read of the items of a list, which a tail does not have."""
    if not is_tail(cx, value):
        return
    place = cx.caller.owned[value.cell].place
    if place[0] == "argument":
        raise OtherForm(place, is_read=True)
    cx.recursion.written.read.add(place)
    raise Restart


def append_only(cx: Context, ref: Ref) -> None:
    """Record an append to a list: only its tail is needed, unless it is known to be read as well."""
    owned = cx.caller.owned.get(ref.cell)
    if owned is None or owned.is_tail or owned.place[0] != "argument" or owned.place in cx.recursion.written.read:
        return
    raise OtherForm(owned.place, is_read=False)
