"""Abstract state: variables and cells on a path, frames, and values that exist only during lowering."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import gast

from tapegen.frontend.source.liveness import Liveness
from tapegen.frontend.source.parse import Parsed
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct
from tapegen.ir.nodes import Expr, Var
from tapegen.ir.types import Array, Scalar


@dataclass(frozen=True, slots=True, eq=False)
class Ref:
    """A mutable container (list, dict, object) by identity; `State.cells` holds its contents."""

    cell: int


@dataclass(frozen=True, slots=True)
class Cell:
    """Contents of a mutable container.  `frozen` says why it must not be changed, if so."""

    content: Struct | RunList
    frozen: str = ""


@dataclass(frozen=True, slots=True)
class RunList:
    """A list that grows at run time: one run-time list (column) for each leaf of its items.

    All items have the structure of `item`.  `loop` is the `for` that makes it grow, if one does.
    """

    item: Any
    columns: tuple[Var, ...]
    loop: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function defined inside the function at hand; `defaults` were evaluated at its definition."""

    node: gast.FunctionDef | gast.Lambda
    frame: Frame
    defaults: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A live view of the keys, values or items of a dict."""

    owner: Any
    part: str

    @property
    def cls(self) -> type:
        return type(getattr({}, self.part)())


@dataclass(frozen=True, slots=True)
class Method:
    """A method of arrays, scalars, lists, dicts or tuples; a table maps it to its handler."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class SliceValue:
    """`lo:hi:step`, each part a value or None."""

    lo: Any = None
    hi: Any = None
    step: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A callable with its first arguments: a method of an abstract value, a partial application."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Super:
    """`super()`: the object, its class, and the class after which attributes are looked for."""

    owner: Any
    cls: type
    after: type


@dataclass(frozen=True, slots=True, eq=False)
class Captured:
    """A container reached through a global or closure variable; it is expanded only as far as it is used.

    `path` is the location: one object may be reached in two ways, and a location may hold another object later.
    """

    value: Any
    getter: Callable[[], Any]
    name: str
    path: Any


class _Absent:
    """No value: the variable is not bound on this path."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """A variable that is bound on some paths only; `bound` tells at run time."""

    value: Any
    bound: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A union of two values of different kinds, such as None or a scalar: `first` where `test` holds, else `second`.

    `kinds` distinguish the alternatives.
    """

    test: Expr
    first: Any
    second: Any
    kinds: tuple[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Poison:
    """A variable whose values on different paths cannot be one value; reading it is refused."""

    reason: str
    advice: str


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Something to iterate over: its length and its items.  `unroll` when the items differ in kind."""

    length: Any  # int when known
    item: Callable[[Any], Any]
    unroll: bool = False
    bounds: tuple[Expr, Expr, Expr] | None = None  # of a plain range
    known: Any = UNKNOWN  # the length of an array, where it is known
    axes: Axes | None = None
    count: tuple[Any, Any] | None = None  # of `itertools.count`: start and step
    lists: frozenset[int] = frozenset()  # the cells of the lists and dicts that it iterates over
    parallel: bool = False  # whether its iterations may run in any order
    behind: tuple[Any, ...] = ()  # the generators that make the items, see `lowering.generators`
    iterator: Iterator | None = None  # what makes it a one-pass iterator
    bar: tuple[tuple[str, Any], ...] = ()  # the options of the progress bar of the loop


@dataclass(frozen=True, slots=True, eq=False)
class Iterator:
    """What a series has that gives each of its items once.

    Attributes
    ----------
    number : int
        Tells it from others: `State.taken` counts the items that it has given.
    loops : int
        The loops around the place where it was made.
    contents : tuple
        The lists and dicts that it iterates over, each with what it held when the iterator was made.
    """

    number: int
    loops: int
    contents: tuple[tuple[int, Any], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """The loop nest that produces the items of a series: tuples with one item per loop.

    Attributes
    ----------
    loops : tuple of callable
        Each gives the series of one loop for the items of the enclosing loops.
    beside : callable or None
        The value beside the tuple in an item (`(i, j), value`).
    """

    loops: tuple[Callable[[Sequence[Any]], Series], ...]
    beside: Callable[[Sequence[Any]], Any] | None = None


# ---- paths ---------------------------------------------------------------------------------------------------------

Key = tuple[Any, str]
BREAK, CONTINUE, RETURN = (None, "left"), (None, "skipped"), (None, "returned")
FLAGS = (BREAK, CONTINUE, RETURN)
RESULT: Key = (None, "result")
WARNINGS: Key = (None, "warnings")
"""Holds the class of the exception that NumPy raises on this path instead of a warning, if it does."""


SPENT = sys.maxsize
"""Items that an iterator has given which is exhausted, or whose position depends on the path."""


class State:
    """The variables of all frames and the contents of mutable containers, on one path."""

    __slots__ = ("cells", "escape_live", "taken", "vars")

    def __init__(self, vars_: dict[Key, Any], cells: dict[int, Cell], taken: Mapping[int, int] | None = None) -> None:
        self.vars = vars_
        self.cells = cells
        self.taken = dict(taken or {})  # the number of items that iterators have given
        self.escape_live: frozenset[str] | None = None  # on an escaped path: variables live at its target

    def copy(self) -> State:
        return State(dict(self.vars), dict(self.cells), self.taken)


class Box:
    """Class of the container (attribute `value`) of a variable that an inner function assigns (`nonlocal`)."""


@dataclass(eq=False, slots=True)
class Frame:
    """The frame of a function during lowering: its names, its text, its position in the call stack.

    Variables that inner functions assign (`boxed`) are held in a container each, which is joined like any other.
    """

    node: gast.FunctionDef | gast.Lambda
    parsed: Parsed
    locals: frozenset[str]
    live: Liveness
    parent: Frame | None = None  # the enclosing function of an inner one
    name: str = ""
    is_comprehension: bool = False
    boxed: frozenset[str] = frozenset()
    loops: list[tuple[frozenset[str], frozenset[str]]] = field(default_factory=list)  # (live at head, live after)


@dataclass(eq=False, slots=True)
class Head:
    """The state at the start of an iteration of a loop during lowering; `observed` are the variables it has read."""

    values: dict[Key, Any]
    observed: set[Key] = field(default_factory=set)


# ---- compile-time values -------------------------------------------------------------------------------------------


def is_array(value: Any) -> bool:
    return isinstance(value, Leaf) and isinstance(value.type, Array)


def is_scalar(value: Any) -> bool:
    return isinstance(value, Leaf) and isinstance(value.type, Scalar)


def known_value(value: Any) -> Any:
    """The compile-time value of an abstract value, or UNKNOWN."""
    if isinstance(value, StaticValue):
        return value.value
    if isinstance(value, Leaf):
        return value.known
    return UNKNOWN


NUMBERS = (bool, int, float, complex)


def is_number(value: Any) -> bool:
    """Whether a compile-time value is a Python number."""
    return type(value) in NUMBERS


TRUE, FALSE = StaticValue(True), StaticValue(False)


@dataclass(eq=False, slots=True)
class ContainerTable:
    """The mutable containers of a program, by number, and what is known of them on all paths.

    Attributes
    ----------
    merged_cells : dict
        What the containers held that a join of paths has made.
    copied : dict
        Containers with a copy that would miss a change, and why.
    named_lists : set
        Joined containers that have an alias on one path.
    made_by : dict
        Containers in a growing list: the loop that makes it grow.
    unsettled : dict
        Containers whose keys differ from iteration to iteration: the loop.
    generated : dict
        Values that generators have read, by the lists of their items.
    resized : Counter
        How often the length of each list or dict has been changed.
    """

    merged_cells: dict[int, Cell] = field(default_factory=dict)
    copied: dict[int, str] = field(default_factory=dict)
    named_lists: set[int] = field(default_factory=set)
    made_by: dict[int, Any] = field(default_factory=dict)
    unsettled: dict[int, Any] = field(default_factory=dict)
    generated: dict[int, Any] = field(default_factory=dict)
    resized: Counter[int] = field(default_factory=Counter)
