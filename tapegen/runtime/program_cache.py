"""Program cache (LRU): the programs of one function, of which the least recently used are evicted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain
from typing import Any

from tapegen.pipeline.artifacts.program import Program

MOST_PROGRAMS = 128
"""Maximal number of programs of one function; a constant that changes with each call makes a new one each time."""


class ProgramCache:
    """Programs by the types that they were lowered for.

    Readers need no lock: a list that has been returned never changes.  Writers hold `building`.
    """

    def __init__(self) -> None:
        self._programs: dict[Any, tuple[Program, ...]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Program]:
        return chain.from_iterable(tuple(self._programs.values()))

    def of(self, key: Any) -> tuple[Program, ...]:
        """The programs for arguments of these types, oldest first."""
        return self._programs.get(key, ())

    def add(self, key: Any, program: Program) -> None:
        """Add a program, and evict the least recently used one where there are too many."""
        program.last_used = time.monotonic()
        self._programs[key] = (*self.of(key), program)
        self._count += 1
        if self._count > MOST_PROGRAMS:
            self._evict(min(self, key=lambda kept: kept.last_used))

    def _evict(self, program: Program) -> None:
        for key, found in list(self._programs.items()):
            if program in found:
                self._programs[key] = tuple(kept for kept in found if kept is not program)
                self._count -= 1
                if not self._programs[key]:
                    del self._programs[key]
