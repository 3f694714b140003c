"""Structural hash: a canonical text of a program, the content key of stored derivatives.

Different programs have different texts.  Objects are written as import paths, numbers with all digits, and positions
in the user's source relative to the beginning of the program.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from tapegen.errors import Span
from tapegen.ir.nodes import Function, Routine, Var

_STABLE = frozenset(
    {
        "builtins",
        "numpy",
        "scipy",
        "math",
        "_math",
        "cmath",
        "operator",
        "_operator",
        "functools",
        "itertools",
        "tapegen",
    }
)


class NoDigest(Exception):
    """A program refers to an object without an import path."""


class Places:
    """Spans as numbers, relative to the first line of a program.

    Parameters
    ----------
    origin : Span or None
        Where the program begins.
    """

    def __init__(self, origin: Span | None) -> None:
        self.files = [] if origin is None else [origin.file]
        self.line = 0 if origin is None else origin.line

    def coded(self, span: Span) -> tuple[Any, ...]:
        """A span, with the number of its file and lines counted from the beginning."""
        if span.file not in self.files:
            self.files.append(span.file)
        file, line = self.files.index(span.file), self.line
        place = (span.line - line, span.column, span.end_line - line, span.end_column)
        return (file, *place, list(span.lines), span.adjoint)

    def span(self, coded: Any) -> Span:
        """The inverse of `coded`, in a process that may have the files elsewhere."""
        file, line, column, end_line, end_column, lines, adjoint = coded
        line, end_line = line + self.line, end_line + self.line
        return Span(self.files[file], line, column, end_line, end_column, tuple(lines), adjoint)


def canonical_text(function: Function, places: Places, *, within_process: bool = False) -> str:
    """The canonical text of a program.

    Parameters
    ----------
    function : Function
        The program.
    places : Places
        Collects the files of its spans.
    within_process : bool
        Whether objects without an import path are identified by `id`, valid as long as they live.

    Raises
    ------
    NoDigest
        The program calls an object without an import path.
    """
    parts: list[str] = []
    _Writer(parts.append, places, within_process)(function)
    return "".join(parts)


class _Writer:
    def __init__(self, put: Callable[[str], None], places: Places, within_process: bool) -> None:
        self.put, self.places, self.within_process = put, places, within_process
        self.seen: dict[int, tuple[str, Any]] = {}  # the text of a Var or Span, and the object, kept alive
        self.routines: list[Routine] = []

    def __call__(self, value: Any) -> None:
        kind = type(value)
        if kind is Var or kind is Span:
            found = self.seen.get(id(value))
            if found is None:
                text = f"Var({value.name!r},{value.type!r})" if kind is Var else repr(self.places.coded(value))
                found = self.seen[id(value)] = (text, value)
            self.put(found[0])
        elif kind is Routine:
            known = value in self.routines
            self.routines += [] if known else [value]
            self.put(f"Routine({self.routines.index(value)})")
            if not known:  # its derivatives follow from it
                self((value.name, value.function, [sorted(shared) for shared in value.shares]))
        elif kind is tuple or kind is list:
            self.put("(" if kind is tuple else "[")
            for item in value:
                self(item)
                self.put(",")
            self.put(")")
        elif value is None or kind in (bool, int, str, bytes):
            self.put(repr(value))
        elif kind is float:
            self.put(value.hex())
        elif kind is frozenset:
            parts: list[str] = []
            for item in value:
                inner: list[str] = []
                _Writer(inner.append, self.places, self.within_process)(item)
                parts.append("".join(inner))
            self.put(f"{{{','.join(sorted(parts))}}}")
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            self.put(kind.__name__ + "(")
            for name in _fields(kind):  # type: ignore[arg-type]
                self(getattr(value, name))
                self.put(",")
            self.put(")")
        else:
            try:
                self.put(_named(value))
            except NoDigest:
                if not self.within_process:
                    raise
                self.put(f"object({id(value)})")


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.init)  # others are cached facts


def _named(value: Any) -> str:
    """The text of an object that is not an IR node."""
    if isinstance(value, complex):
        return f"complex({value.real.hex()},{value.imag.hex()})"
    if isinstance(value, np.generic):
        return f"{value.dtype.str}:{value.tobytes().hex()}"
    if isinstance(value, np.dtype) and value.names is None:
        return f"dtype({value.str})"
    if value is Ellipsis:
        return "..."
    if isinstance(value, slice):
        return f"slice({value.start!r},{value.stop!r},{value.step!r})"
    if isinstance(value, ModuleType):
        path = value.__name__
        if path.partition(".")[0] in _STABLE and sys.modules.get(path) is value:
            return f"module({path})"
        raise NoDigest
    if (
        isinstance(value, type)
        and issubclass(value, BaseException)
        and exception_named(*import_path_of(value)) is value
    ):
        return "exception {}:{}".format(*import_path_of(value))  # its instances are only raised
    owner = getattr(value, "__self__", None)
    if isinstance(owner, np.ufunc):
        return f"{_named(owner)}.{value.__name__}"
    name: str | None = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    homes = (getattr(value, "__module__", None), "numpy", "scipy.special")
    for module in homes if name is not None else ():
        if isinstance(module, str) and module.partition(".")[0] in _STABLE and _found(module, name or "") is value:
            return f"{module}:{name}"
    raise NoDigest


def import_path_of(value: type) -> tuple[str, str]:
    """Module and name of a class."""
    return value.__module__, value.__qualname__


def exception_named(module: str, name: str) -> type[BaseException] | None:
    """The exception class with an import path; its module has been imported."""
    found = _found(module, name)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def _found(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


__all__ = ["NoDigest", "Places", "canonical_text", "exception_named", "import_path_of"]
