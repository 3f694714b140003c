"""How a call of somebody else's function is written down here."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PREPARED: dict[str, Callable[[Any], None]] = {"psychrolib": lambda module: module.SetUnitSystem(module.SI)}


@dataclass(frozen=True)
class Call:
    """One call.  `function` names it from its module on; `()` after a class stands for an instance of it."""

    function: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def package(self) -> str:
        return self.function.partition(".")[0]

    def resolve(self) -> Callable[..., Any]:
        """The function itself."""
        module, names = _import_longest(self.function.split("."))
        if self.package in PREPARED:
            PREPARED[self.package](module)
        return functools.reduce(_attribute, names, module)


class With:
    """Arguments of a call: `With(1.0, x, axis=0)`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs


def calls(module: str, /, **arguments: With | tuple[Any, ...] | float | Any) -> list[Call]:
    """Calls of functions of `module`: `name=With(...)`; a tuple is positional arguments, anything else the only one."""
    return [_call(f"{module}.{name}", given) for name, given in arguments.items()]


def same(module: str, names: str, *args: Any, **kwargs: Any) -> list[Call]:
    """Calls of several functions with the same arguments; `names` is separated by blanks."""
    return [Call(f"{module}.{name}", args, kwargs) for name in names.split()]


def _call(function: str, given: Any) -> Call:
    if isinstance(given, With):
        return Call(function, given.args, given.kwargs)
    return Call(function, given if isinstance(given, tuple) else (given,), {})


def _import_longest(parts: list[str]) -> tuple[Any, list[str]]:
    for count in range(len(parts), 0, -1):
        try:
            return importlib.import_module(".".join(parts[:count])), parts[count:]
        except ModuleNotFoundError as missing:
            if missing.name is None or not ".".join(parts[:count]).startswith(missing.name):
                raise
    raise ModuleNotFoundError(parts[0], name=parts[0])


def _attribute(owner: Any, name: str) -> Any:
    found = getattr(owner, name.removesuffix("()"))
    return found() if name.endswith("()") else found
