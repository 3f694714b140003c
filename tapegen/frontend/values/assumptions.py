"""What a program was lowered under: values that were assumed constant, and the check that they still hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

from tapegen.frontend.values.pytree import same_static
from tapegen.ir.nodes import Var


class Guard(NamedTuple):
    """A value that was assumed constant: the program is valid as long as `getter()` returns it."""

    getter: Callable[[], Any]
    value: Any
    name: str = ""  # as a message shows it
    is_variable: bool = False  # a global or a variable of an enclosing function


class ContainerRead(NamedTuple):
    """A read of a captured container: of the item under `key`, or of whatever it holds if that is `WHOLE`."""

    getter: Callable[[], Any]
    name: str
    key: Any


WHOLE: Any = object()
"""Stands for all keys of a container, and for how many there are."""


def guards_hold(guards: Iterable[tuple[Any, ...]]) -> bool:
    """Whether all guarded values are unchanged."""
    try:
        for guard in guards:
            value, found = guard[1], guard[0]()
            if found is not value and not same_static(found, value):
                return False
    except (NameError, AttributeError, LookupError, TypeError):
        return False
    return True


def changed_guard(guards: Iterable[Guard]) -> Guard | None:
    """The first guard that does not hold."""
    return next((guard for guard in guards if not guards_hold((guard,))), None)


@dataclass(eq=False, slots=True)
class Assumptions:
    """What the program at hand takes for given, and what it reads from around the function.

    Attributes
    ----------
    guards : dict
        By the place that was read: how to read it again, and the value that was assumed.
    library : dict
        Attributes that were read from library modules, by the identity of the module.
    captured : dict
        Captured numbers and arrays that are arguments of the program, by path: the variable, and how to read them.
    reads : dict
        Reads of captured containers, by path and key.
    shaped : set
        Of these, the arrays whose shapes must be known.
    floats : dict
        Captured floats that were assumed constant, by variable.
    changing : frozenset
        Of these, the ones that are arguments, since they have changed.
    sources : dict
        The functions whose text the program was made of, in order.
    read_for : frozenset
        Functions that are lowered to find the globals that they read.
    modules : dict
        Names under which the printed program imports modules.
    """

    guards: dict[Any, Guard] = field(default_factory=dict)
    library: dict[int, tuple[ModuleType, dict[str, Any]]] = field(default_factory=dict)
    captured: dict[Any, tuple[Var, Callable[[], Any]]] = field(default_factory=dict)
    reads: dict[Any, ContainerRead] = field(default_factory=dict)
    shaped: Set[Any] = frozenset()
    floats: dict[Any, Any] = field(default_factory=dict)
    changing: frozenset[Any] = frozenset()
    sources: dict[Any, None] = field(default_factory=dict)
    read_for: frozenset[Any] = frozenset()
    modules: dict[str, str] = field(default_factory=dict)

    def update(self, other: Assumptions) -> None:
        """Assume what another program reads as well; what is assumed already stays."""
        for key, guard in other.guards.items():
            self.guards.setdefault(key, guard)
        self.reads.update(other.reads)
        for module, found in other.library.values():
            self.library.setdefault(id(module), (module, {}))[1].update(found)
        self.sources.update(other.sources)
