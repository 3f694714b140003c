"""Programs that are kept for the next call: as many as may be, the least recently used given up first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain
from typing import Any

from tapegen.pipeline.program import Program

MOST_PROGRAMS = 128
"""Programs of one function that are kept at once; a constant that changes with each call makes a new one each time."""


class Kept:
    """Programs by what they were made for.

    Readers need no lock: a list that has been handed out never changes.  Those who add hold `building`.
    """

    def __init__(self) -> None:
        self._programs: dict[Any, tuple[Program, ...]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Program]:
        return chain.from_iterable(tuple(self._programs.values()))

    def of(self, key: Any) -> tuple[Program, ...]:
        """The programs made for arguments of these types, in the order of their making."""
        return self._programs.get(key, ())

    def add(self, key: Any, program: Program) -> None:
        """Keep one more, and give up the one that has not been used for longest where there are too many."""
        program.last_used = time.monotonic()
        self._programs[key] = (*self.of(key), program)
        self._count += 1
        if self._count > MOST_PROGRAMS:
            self._give_up(min(self, key=lambda kept: kept.last_used))

    def _give_up(self, program: Program) -> None:
        for key, found in list(self._programs.items()):
            if program in found:
                self._programs[key] = tuple(kept for kept in found if kept is not program)
                self._count -= 1
                if not self._programs[key]:
                    del self._programs[key]
