"""Tracebacks of errors that leave tapegen: they hold the frames of the user's program, as if it ran as plain Python."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar, cast

from tapegen.pipeline.fault_boundary import is_of_tapegen, is_of_user
from tapegen.settings import config

Func = TypeVar("Func", bound=Callable[..., Any])


def hides_frames(func: Func) -> Func:
    """Decorator of functions that users call: errors show the frames of the user's program only."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    return cast(Func, call)


def hide_frames(error: BaseException) -> None:
    """Remove the frames that are not of the user's program from the traceback of an error.

    For an `except` clause that ends in `raise`, in a function that users call: the frame of that function is removed
    as well.  Nothing changes where tapegen itself has called that function, because it may handle the error.
    """
    if config.tracebacks == "full" or is_of_tapegen(sys._getframe(2)):
        return
    seen: list[BaseException] = []
    while not any(error is other for other in seen):
        seen.append(error)
        error.__traceback__ = _of_user(error.__traceback__)
        link = found = _link(error)
        while found is not None and _is_internal(found):
            found = _link(found)
        if found is not link:
            error.__cause__, error.__context__ = None, found
            error.__suppress_context__ = found is None
        if found is None:
            return
        error = found


def _link(error: BaseException) -> BaseException | None:
    """The error that is shown before an error."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _is_internal(error: BaseException) -> bool:
    """Whether an error arose inside tapegen; the message of the one that users see reports it."""
    frames = [entry.tb_frame for entry in _entries(error.__traceback__)]
    return any(map(is_of_tapegen, frames)) and not any(map(is_of_user, frames))


def _of_user(traceback: TracebackType | None) -> TracebackType | None:
    """The entries of the user's program, and of libraries where this has called them."""
    kept: list[TracebackType] = []
    is_shown = True
    for entry in _entries(traceback):
        if is_of_tapegen(entry.tb_frame):
            is_shown = False
        elif is_of_user(entry.tb_frame):
            is_shown = True
        if is_shown:
            kept.append(entry)
    made: TracebackType | None = None
    for entry in reversed(kept):
        made = TracebackType(made, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return made


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
