"""What is told of compiling: a line in a terminal or notebook after a second, and records of the logger `tapegen`."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from numba.core import sigutils, types

from tapegen.backend.printer.source import PythonSource
from tapegen.settings import config

_logger = logging.getLogger("tapegen")

QUIET = 1.0
"""Seconds after which the line appears."""

_PER_LINE = 0.008  # seconds for a line of compiled text, until there are measurements
_STARTS = 0.3  # seconds whatever the length

_lock = threading.Lock()


@dataclass
class _Pace:
    """How fast this process compiles: what it expected of the programs so far, and what they took."""

    expected: float = 0.0
    taken: float = 0.0

    def seconds(self, lines: int) -> float:
        """The expected seconds for a program of this length."""
        plain = _STARTS + _PER_LINE * lines
        return plain * (plain + self.taken) / (plain + self.expected)

    def note(self, lines: int, seconds: float) -> None:
        self.expected += _STARTS + _PER_LINE * lines
        self.taken += seconds


@dataclass
class _Series:
    """The programs that one call compiles."""

    total: int = 0
    count: int = 0
    depth: int = 0


_pace = _Pace()
_thread = threading.local()


def _current() -> _Series:
    if not hasattr(_thread, "series"):
        _thread.series = _Series()
    found: _Series = _thread.series
    return found


@contextmanager
def series(total: int) -> Iterator[None]:
    """Count the programs that this thread compiles within, of which there are this many."""
    outer, _thread.series = _current(), _Series(total)
    try:
        yield
    finally:
        _thread.series = outer


@contextmanager
def compiling(dispatcher: Any, source: PythonSource, signature: Any) -> Iterator[None]:
    """Report that a dispatcher compiles: when it takes long, and at its end.

    What it compiles on the way is a part of it.
    """
    now = _current()
    wanted = tuple(sigutils.normalize_signature(signature)[0])
    if now.depth or wanted in dispatcher.overloads:
        yield
        return
    now.depth, now.count = 1, now.count + 1
    lines = source.text.count("\n")
    of = f"{now.count} of {now.total} programs, " if now.total > 1 else ""
    begun = time.perf_counter()
    line = _Line(f"tapegen: compiling {source.entry} ({of}about {max(1, round(_pace.seconds(lines)))} s)")
    try:
        yield
    finally:
        line.remove()
        now.depth = 0
    seconds = time.perf_counter() - begun
    found = "loaded" if dispatcher.stats.cache_hits.get(wanted) else "compiled"
    if found == "compiled":
        _pace.note(lines, seconds)
    names = dispatcher.py_func.__code__.co_varnames
    why = _reason(names, wanted, [earlier for earlier in dispatcher.overloads if earlier != wanted])
    _logger.info("%s %s (%s) in %.2f s: %s", found, source.entry, ", ".join(map(str, wanted)), seconds, why)


def _reason(names: Sequence[str], wanted: Sequence[Any], earlier: Sequence[Sequence[Any]]) -> str:
    """Why code for argument types is needed beside what there is."""
    if not earlier:
        return "its first call"
    last = earlier[-1]
    changes = [f"{name} is {_change(a, b)}" for name, a, b in zip(names, wanted, last, strict=False) if a != b]
    return ", ".join(changes)


def _change(now: Any, before: Any) -> str:
    """What is new in a type."""
    if isinstance(now, types.Array) and isinstance(before, types.Array) and now.dtype == before.dtype:
        if now.mutable != before.mutable:
            return "writable" if now.mutable else "read-only"
        if now.layout != before.layout:
            return f"of layout {now.layout}, not {before.layout}"
        if now.aligned != before.aligned:
            return "aligned" if now.aligned else "not aligned"
    return f"{now}, not {before}"


class _Line:
    """A line that appears after a while, where somebody looks at it, and goes away."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._shown: Any = None
        self._timer: threading.Timer | None = None
        if is_watched():
            self._timer = threading.Timer(QUIET, self._show)
            self._timer.daemon = True
            self._timer.start()

    def _show(self) -> None:
        with _lock:
            if self._timer is None:
                return
            if _in_notebook():
                from IPython.display import display

                self._shown = display({"text/plain": self._text}, raw=True, display_id=True)
            else:
                self._shown = sys.stderr
                sys.stderr.write(f"\r{self._text}")
                sys.stderr.flush()

    def remove(self) -> None:
        if self._timer is None:
            return
        self._timer.cancel()
        with _lock:
            self._timer = None
            if self._shown is sys.stderr:
                sys.stderr.write("\r" + " " * len(self._text) + "\r")
                sys.stderr.flush()
            elif self._shown is not None:
                self._shown.update({"text/plain": ""}, raw=True)


def is_watched() -> bool:
    """Whether the line is shown: by `tg.config.progress`, or where standard error is a terminal or a notebook."""
    if config.progress != "auto":
        return config.progress
    try:
        return _in_notebook() or sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is no standard error, or it is closed
        return False


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


__all__ = ["compiling", "is_watched", "series"]
