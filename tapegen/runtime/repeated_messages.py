"""Messages of a program that runs a second time: what the first run has printed, logged or warned of is not repeated.

Where generated code raises, plain Python runs the call once more, so that the user sees Python's own exception.  Its
messages up to there have been seen.
"""

from __future__ import annotations

import builtins
import functools
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_LEVELS = ("debug", "info", "warning", "error", "critical", "exception", "log")


class _Seen(threading.local):
    left: float = 0.0
    """How many of the next messages of this thread have been seen."""


_seen = _Seen()
_lock = threading.Lock()
_threads = 0
_replaced: list[tuple[Any, str, Any]] = []


@contextmanager
def seen(count: float) -> Iterator[None]:
    """Leave out the next `count` messages of this thread; all of them for infinity."""
    global _threads
    with _lock:
        _threads += 1
        if _threads == 1:
            _replace()
    _seen.left = count
    try:
        yield
    finally:
        _seen.left = 0.0
        with _lock:
            _threads -= 1
            if _threads == 0:
                _put_back()


def _replace() -> None:
    of_logging = ((logging.Logger, level) for level in _LEVELS)
    for owner, name in ((builtins, "print"), (warnings, "warn"), (warnings, "warn_explicit"), *of_logging):
        original = getattr(owner, name)
        _replaced.append((owner, name, original))
        setattr(owner, name, _once(original))


def _put_back() -> None:
    while _replaced:
        setattr(*_replaced.pop())


def _once(original: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which does nothing for a message that was seen."""

    @functools.wraps(original)
    def once(*args: Any, **kwargs: Any) -> Any:
        if _seen.left > 0:
            _seen.left -= 1
            return None
        name = original.__name__
        if name not in ("print", "warn_explicit") and not (
            name == "warn" and len(args) > 2
        ):  # the caller is one frame further away
            kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        return original(*args, **kwargs)

    return once
