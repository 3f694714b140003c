"""NaN tracing: generated Python runs with a trace function that finds the first line with a NaN or an infinity."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np

from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.source import PythonSource
from tapegen.ir import traversal
from tapegen.ir.nodes import Block, Call, Function

_WATCHING: ContextVar[bool] = ContextVar("watching", default=False)
_ZEROS: dict[Any, Any] = {np.empty: np.zeros, np.empty_like: np.zeros_like}
_NAME = re.compile(r"[^\W\d]\w*")


class MadeNonFinite(Exception):
    """A line of generated source made a NaN or an infinity from finite values."""

    def __init__(self, line: int, what: str, name: str) -> None:
        super().__init__(f"this makes {what} in '{name}'" if name else f"this makes {what}")
        self.line = line


@contextmanager
def debug_nans() -> Iterator[None]:
    """A context in which derived functions raise where a NaN or an infinity first appears.

    The error names the line of the user's function, also if its derivative is to blame.  Values in the arguments,
    and constants of the program, are not reported.  Calls inside run generated Python, slowly.

    Raises
    ------
    NotFinite
        By the calls inside.

    Examples
    --------
    >>> with tg.debug_nans():
    ...     tg.grad(lambda x: x**0.5)(0.0)
    Traceback (most recent call last):
    ...
    tapegen.errors.NotFinite: ...
    """
    token = _WATCHING.set(True)
    try:
        yield
    finally:
        _WATCHING.reset(token)


watching: Callable[[], bool] = _WATCHING.get
"""Whether `debug_nans` is in force."""


def without_garbage(function: Function) -> Function:
    """The function with zeros in place of uninitialized arrays."""

    def change(part: Any) -> Any:
        return replace(part, func=_ZEROS[part.func]) if isinstance(part, Call) and part.func in _ZEROS else part

    def block(stmts: Block) -> Block:
        mapped = (traversal.map_headers(stmt, lambda node: traversal.map_expr(node, change)) for stmt in stmts)
        return tuple(traversal.with_blocks(stmt, tuple(map(block, stmt.blocks))) for stmt in mapped)

    return replace(function, body=block(function.body))


def run_with_nan_checks(source: PythonSource, arguments: list[Any]) -> Any:
    """The result of a generated function, or `MadeNonFinite`."""
    built = build_python(source)
    watch = _Watch(source)
    before = sys.gettrace()
    sys.settrace(watch.start)
    try:
        return built(*arguments)
    finally:
        sys.settrace(before)


class _Watch:
    """A trace function that checks all scalars and arrays after each line."""

    def __init__(self, source: PythonSource) -> None:
        self.source = source
        self.lines = source.text.splitlines()
        self.bad: set[str] = set()
        self.line = 0

    def start(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if code.co_filename != self.source.file_name or code.co_name != self.source.entry:
            return None
        self.bad = {name for name, value in frame.f_locals.items() if _fault(value)}
        return self.step

    def step(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        if event in ("line", "return"):
            values = dict(frame.f_locals)
            if event == "return" and isinstance(arg, tuple):
                values |= {f"result {k}": part for k, part in enumerate(arg)}
            faults = {name: fault for name, value in values.items() if (fault := _fault(value))}
            new = faults.keys() - self.bad
            text = self.lines[self.line - 1] if self.line else ""
            if new and self.bad.isdisjoint(_NAME.findall(text)) and "inf" not in text and "nan" not in text:
                name = min(new)
                raise MadeNonFinite(self.line, faults[name], name if name.isidentifier() else "")
            self.bad = set(faults)
            self.line = frame.f_lineno
        return self.step


def _fault(value: Any) -> str:
    """The kind of non-finite value: "a NaN", "an infinity" or nothing."""
    if isinstance(value, list):
        return next((fault for item in value if (fault := _fault(item))), "")
    if not isinstance(value, float | complex | np.ndarray | np.inexact) or np.asarray(value).dtype.kind not in "fc":
        return ""
    if np.isnan(value).any():
        return "a NaN"
    return "an infinity" if np.isinf(value).any() else ""
