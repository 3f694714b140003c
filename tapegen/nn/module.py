"""Modules: objects that know the variables in their attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tapegen.tape import Variable


class Module:
    """The base of whatever holds variables: in attributes, lists, tuples, dictionaries and other modules.

    Parameters
    ----------
    name : str, optional
        For people; by default that of the class, in lower case with underscores.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower() if name is None else name

    def _attributes(self) -> dict[str, Any]:
        """Where variables are looked for, in this order."""
        return vars(self)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, each once, in the order of the attributes."""
        found: dict[int, Variable] = {}
        for item in _held(self._attributes(), {id(self)}):
            if isinstance(item, Variable):
                found.setdefault(id(item), item)
        return tuple(found.values())

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that are not trainable."""
        return tuple(variable for variable in self.variables if not variable.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """The modules within this one, each once, in the order of the attributes."""
        return tuple(item for item in _held(self._attributes(), {id(self)}) if isinstance(item, Module))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that are trainable."""
        return tuple(variable for variable in self.variables if variable.trainable)


def _held(value: Any, seen: set[int]) -> Iterator[Module | Variable]:
    """Modules and variables in a structure and in one another, in the order in which they stand."""
    if isinstance(value, Variable):
        yield value
    elif id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, Module):
            yield value
            yield from _held(value._attributes(), seen)
        elif isinstance(value, dict | list | tuple):
            for item in value.values() if isinstance(value, dict) else value:
                yield from _held(item, seen)
