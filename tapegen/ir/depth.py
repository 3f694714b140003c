"""Room for the nesting of the user's program: calls, expressions and sums of many terms nest in the passes as well."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

RECURSION = 20_000
"""Depth of Python calls inside the passes."""


@contextmanager
def deep() -> Iterator[None]:
    """Let the passes nest as deeply as they need."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
