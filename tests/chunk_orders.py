"""Chunks of parallel loops in any order: an executor that detects conflicting accesses, in place of the threads.

Each loop that `loops.parallel` outlines is run as chunks of one iteration.  Every element that a chunk reads or writes
is noted: no chunk may access what another one writes.  The chunks run in several orders, and must leave the same bits.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tapegen.ir import intrinsics
from tapegen.loops.parallel import outlining
from tests.grown.loop_texts import uncompiled


class Conflict(AssertionError):
    """Two chunks access an element that one of them writes, or their order matters."""


@dataclass
class Journal:
    """The addresses of the elements, and the items of lists, that one chunk reads and writes."""

    reads: set[Any] = field(default_factory=set)
    writes: set[Any] = field(default_factory=set)


class Noted(np.ndarray):
    """An array that notes accesses of its elements."""

    journal: Journal | None = None

    @classmethod
    def of(cls, array: np.ndarray, journal: Journal) -> Noted:
        made = array.view(cls)
        made.journal = journal
        return made

    def __array_finalize__(self, other: Any) -> None:
        self.journal = getattr(other, "journal", None)

    def places(self, index: Any = ...) -> set[int]:
        """The addresses of the elements at an index."""
        plain = self.view(np.ndarray)
        found = np.zeros(plain.shape, np.int64)
        for axis, (size, stride) in enumerate(zip(plain.shape, plain.strides, strict=True)):
            shape = [1] * plain.ndim
            shape[axis] = size
            found += (np.arange(size) * stride).reshape(shape)
        return set(np.ravel(found[index] + plain.__array_interface__["data"][0]).tolist())

    def __getitem__(self, index: Any) -> Any:
        found = self.view(np.ndarray)[index]
        if isinstance(found, np.ndarray) and found.base is not None and found.ndim:
            return Noted.of(found, self.journal)  # type: ignore[arg-type]  # noted when its elements are used
        if self.journal is not None:
            self.journal.reads |= self.places(index)
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.journal is not None:
            self.journal.writes |= self.places(index)
        self.view(np.ndarray)[index] = plain(value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        if out:
            for each in out:
                if isinstance(each, Noted) and each.journal is not None:
                    each.journal.writes |= each.places()
            kwargs["out"] = tuple(each.view(np.ndarray) if isinstance(each, Noted) else each for each in out)
        return getattr(ufunc, method)(*map(plain, inputs), **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return func(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})

    def copy(self, order: Any = "C") -> Any:
        return plain(self).copy(order)

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        return Noted.of(self.view(np.ndarray).reshape(*shape, **kwargs), self.journal)  # type: ignore[arg-type]


class NotedList(list[Any]):
    """A list that notes accesses of its items."""

    def __init__(self, items: list[Any], journal: Journal) -> None:
        super().__init__(items)
        self.items, self.journal = items, journal

    def __getitem__(self, index: Any) -> Any:
        self.journal.reads.add((id(self.items), index))
        return self.items[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.journal.writes.add((id(self.items), index))
        self.items[index] = value


def noted(value: Any, journal: Journal) -> Any:
    """An argument that notes accesses."""
    if isinstance(value, list):
        return NotedList(value, journal)
    return Noted.of(value, journal) if isinstance(value, np.ndarray) else value


def plain(value: Any) -> Any:
    """A value without the notes; all of its elements are read."""
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value))
    if not isinstance(value, Noted):
        return value
    if value.journal is not None:
        value.journal.reads |= value.places()
    return value.view(np.ndarray)


def chunks_in_any_order(function: Callable[..., None], chunks: int, *args: Any) -> None:
    """What `intrinsics.run_chunks` does, checked."""
    arrays = [arg for arg in args if isinstance(arg, list) or (isinstance(arg, np.ndarray) and arg.flags.writeable)]
    before = [array.copy() for array in arrays]
    given = random.Random(0)
    shuffled = list(range(chunks))
    given.shuffle(shuffled)
    outcomes = []
    for order in (shuffled, range(chunks - 1, -1, -1), range(chunks)):
        for array, kept in zip(arrays, before, strict=True):
            array[... if isinstance(array, np.ndarray) else slice(None)] = kept
        journals, errors = {}, {}
        for chunk in order:
            journal = journals[chunk] = Journal()
            try:
                with pytest.MonkeyPatch.context() as patched:
                    patched.setattr(np, "empty", np.zeros)  # what nobody writes is the same in all orders
                    function(chunk, chunks, *(noted(arg, journal) for arg in args))
            except Exception as error:
                errors[chunk] = error
        _refuse_conflicts(function, journals)
        if errors:
            raise errors[min(errors)]
        outcomes.append(
            [np.asarray(item).tobytes() for array in arrays for item in (array if isinstance(array, list) else [array])]
        )
    if not outcomes[0] == outcomes[1] == outcomes[2]:
        raise Conflict(f"{function.__name__}: the order of chunks matters")


def _refuse_conflicts(function: Any, journals: dict[int, Journal]) -> None:
    owner: dict[Any, int] = {}
    for chunk, journal in journals.items():
        for place in journal.writes:
            if owner.setdefault(place, chunk) != chunk:
                raise Conflict(f"{function.__name__}: chunks {owner[place]} and {chunk} write one element")
    for chunk, journal in journals.items():
        for place in journal.reads:
            if owner.get(place, chunk) != chunk:
                raise Conflict(f"{function.__name__}: chunk {chunk} reads what chunk {owner[place]} writes")


@contextlib.contextmanager
def checked_chunks() -> Iterator[list[int]]:
    """Let CPython run compiled text, and check its parallel loops; gives the numbers of chunks of those that ran."""
    ran: list[int] = []

    def run(function: Callable[..., None], chunks: int, *args: Any) -> None:
        ran.append(chunks)
        chunks_in_any_order(function, chunks, *args)

    run.__module__, run.__name__ = intrinsics.__name__, "run_chunks"
    with pytest.MonkeyPatch.context() as patched, uncompiled():
        patched.setattr(intrinsics, "run_chunks", run)
        patched.setattr(outlining, "LEAST", 1)
        yield ran
