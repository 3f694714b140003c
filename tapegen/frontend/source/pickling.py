"""Source shipping: texts of a script or notebook, for functions pickled to processes without it."""

from __future__ import annotations

import hashlib
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

Texts = tuple[tuple[str, str, tuple[tuple[str, int], ...]], ...]
"""Names of files or notebook cells, their texts, and the names and first lines of functions in them."""


def travels_by_value(func: Any) -> bool:
    """Whether cloudpickle stores a function with its code, because its receiver cannot import it."""
    if not isinstance(func, FunctionType):
        return False
    if func.__module__ == "__main__":
        return True
    found: Any = sys.modules.get(func.__module__ or "")
    for part in func.__qualname__.split("."):
        found = getattr(found, part, None)
    if getattr(found, "python", found) is not func:
        return True
    import cloudpickle

    registered = cloudpickle.list_registry_pickle_by_value()
    parents = func.__module__.split(".")
    return any(".".join(parents[: k + 1]) in registered for k in range(len(parents)))


def texts_of(func: Any) -> Texts:
    """The texts of a function and of the functions that travel with it."""
    found: dict[str, tuple[str, list[tuple[str, int]]]] = {}
    for each in _reached(func, set()):
        code, file = each.__code__, each.__code__.co_filename
        if file not in found:
            found[file] = "".join(linecache.getlines(file, each.__globals__)), []
        found[file][1].append((each.__qualname__, code.co_firstlineno))
    return tuple((file, text, tuple(places)) for file, (text, places) in found.items())


def keep_texts(func: Any, texts: Texts) -> None:
    """Register texts that this process does not have, and restore file names of functions that have lost them."""
    files: dict[tuple[str, int], str] = {}
    for file, text, places in texts:
        name = file
        lines = text.splitlines(keepends=True)
        if text and linecache.getlines(file) not in ([], lines):  # another file of this name
            name = f"<{file} {hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:12]}>"
        if text and not linecache.getlines(name):
            linecache.cache[name] = (len(text), None, lines, name)
        files.update(dict.fromkeys(places, name))
    for each in _reached(func, set()):
        known = files.get((each.__qualname__, each.__code__.co_firstlineno))
        if known is not None and each.__code__.co_filename != known:  # cloudpickle leaves it out since 3.1.2
            each.__code__ = _in_file(each.__code__, known)


def _in_file(code: CodeType, file: str) -> CodeType:
    inner = (_in_file(constant, file) if isinstance(constant, CodeType) else constant for constant in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(inner))


def _reached(func: Any, seen: set[int]) -> Iterator[FunctionType]:
    func = getattr(func, "__func__", getattr(func, "python", func))
    if not travels_by_value(func) or id(func) in seen:
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
        yield from _reached(value, seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


__all__ = ["Texts", "keep_texts", "texts_of", "travels_by_value"]
