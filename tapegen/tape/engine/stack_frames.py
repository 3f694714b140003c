"""Stack frame lookup: the user's line of an operation."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType, TracebackType

import numpy as np
import scipy

from tapegen.errors import PACKAGE, Span

_OURS = (PACKAGE, str(Path(np.__file__).parent), "<__array_function__")
_SCIPY = str(Path(scipy.__file__).parent)
_LIBRARIES = str(Path(np.__file__).parent.parent)


def user_place() -> tuple[str, int] | None:
    """The file and line of `user_span`, whose text is read later if at all."""
    frame = _outside(*_OURS, _LIBRARIES) or _outside(*_OURS, _SCIPY)
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def user_span() -> Span | None:
    """The line of the innermost frame that belongs neither to this package nor, if possible, to an installed one."""
    place = user_place()
    return None if place is None else Span.of_line(*place)


def scipy_function() -> str:
    """The function of scipy that is being run; empty if there is none."""
    frame: FrameType | None = _outside(*_OURS)
    found = ""
    while frame is not None and frame.f_code.co_filename.startswith(_SCIPY):
        found = frame.f_code.co_name
        frame = frame.f_back
    return found


def lines_of_error(trace: TracebackType | None) -> tuple[set[tuple[str, int]], tuple[str, int] | None]:
    """The user's lines that call scipy on the way to an error, and the innermost line of the user."""
    calling = set()
    place = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith((*_OURS, _LIBRARIES)):
            place = (file, trace.tb_lineno)
        elif file.startswith(_SCIPY) and place is not None:
            calling.add(place)
        trace = trace.tb_next
    return calling, place


def _outside(*places: str) -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(places):
        frame = frame.f_back
    return frame
