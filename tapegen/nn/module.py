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

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, each once, in the order of the attributes."""
        found: dict[int, Variable] = {}
        for variable in _variables(vars(self), set()):
            found.setdefault(id(variable), variable)
        return tuple(found.values())

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that are trainable."""
        return tuple(variable for variable in self.variables if variable.trainable)


def _variables(value: Any, seen: set[int]) -> Iterator[Variable]:
    if isinstance(value, Variable):
        yield value
    elif id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, Module):
            yield from _variables(vars(value), seen)
        elif isinstance(value, dict):
            for item in value.values():
                yield from _variables(item, seen)
        elif isinstance(value, list | tuple):
            for item in value:
                yield from _variables(item, seen)
