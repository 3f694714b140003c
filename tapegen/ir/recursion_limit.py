"""Room for the passes: calls, expressions and sums of many terms nest in them as in the user's program.

Programs are many small objects, few of them in cycles.  Python's collector would look through them every few hundred,
and through all of numba again and again.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

RECURSION = 20_000
"""Depth of Python calls inside the passes."""

YOUNG = 200_000
"""Objects that are made inside the passes before the collector looks at them."""


@contextmanager
def deep() -> Iterator[None]:
    """Let the passes nest as deeply as they need, and make objects without a search for garbage among them."""
    limit, (young, *older) = sys.getrecursionlimit(), gc.get_threshold()
    sys.setrecursionlimit(max(limit, RECURSION))
    gc.set_threshold(max(young, YOUNG) if young else 0, *older)  # 0: no collections at all
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # what the user has frozen stays so
            gc.freeze()  # together: what was made is old, without a search that a lower threshold would begin at once
            gc.unfreeze()
        gc.set_threshold(young, *older)
        sys.setrecursionlimit(limit)
