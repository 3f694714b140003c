"""Recursion limit and garbage collection pause: passes recurse as deeply as the user's calls and expressions nest.

Programs are many small objects, few of them in cycles.  Python's garbage collector would traverse them every few
hundred allocations, and all objects of numba repeatedly.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

RECURSION = 20_000
"""Depth of Python calls inside the passes."""

YOUNG = 200_000
"""Allocations inside the passes before the collector runs."""


@contextmanager
def deep() -> Iterator[None]:
    """Raise the recursion limit and pause garbage collection while passes run."""
    limit, (young, *older) = sys.getrecursionlimit(), gc.get_threshold()
    sys.setrecursionlimit(max(limit, RECURSION))
    gc.set_threshold(max(young, YOUNG) if young else 0, *older)  # 0: no collections at all
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # objects that the user has frozen stay frozen
            gc.freeze()  # with unfreeze: new objects become old without the collection that a lower threshold starts
            gc.unfreeze()
        gc.set_threshold(young, *older)
        sys.setrecursionlimit(limit)
