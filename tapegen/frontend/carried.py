"""The texts of a script or notebook, for functions that are sent to processes without it."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

Texts = tuple[tuple[str, str], ...]
"""Names of files or notebook cells, and what they hold."""


def texts_of(func: Any) -> Texts:
    """The texts of a function and of the functions of its module that it calls."""
    found: dict[str, str] = {}
    for each in _reached(func, set()):
        file = each.__code__.co_filename
        if file not in found:
            found[file] = "".join(linecache.getlines(file, each.__globals__))
    return tuple(found.items())


def keep_texts(texts: Texts) -> None:
    """Make texts known that this process does not have."""
    for file, text in texts:
        if text and not linecache.getlines(file):
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)


def _reached(func: Any, seen: set[int]) -> Iterator[FunctionType]:
    func = getattr(func, "__func__", getattr(func, "python", func))
    if not isinstance(func, FunctionType) or id(func) in seen:
        return
    seen.add(id(func))
    yield func
    names = set(_names(func.__code__))
    values = [func.__globals__.get(name) for name in names]
    for cell in func.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
    for value in values:
        if getattr(value, "__module__", None) == func.__module__:
            yield from _reached(value, seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


__all__ = ["Texts", "keep_texts", "texts_of"]
