"""Where in the user's code something happens."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tapegen.errors import Span

_OURS = str(Path(__file__).parent.parent)
_NUMPY = str(Path(np.__file__).parent)


def user_line() -> str:
    """The innermost such line as text to append: ` (file:line)`."""
    span = user_span()
    return "" if span is None else f" ({span.file}:{span.line}: {span.source_line().strip()})"


def user_span() -> Span | None:
    """The line of the innermost frame that belongs neither to this package nor to NumPy."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_OURS, _NUMPY, "<__array_function__")):
            return Span.of_line(file, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None
