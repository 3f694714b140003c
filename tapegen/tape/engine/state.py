"""Thread-local recording state: the active tapes and accumulators of this thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np

from tapegen.tape.engine.operations import Operation

fresh_id = count(1).__next__
"""Every tensor and every variable has a unique number, never used again; 0 means no tensor."""


class Call(NamedTuple):
    """One operation that has been run.

    Attributes
    ----------
    operation : Operation
        The function.
    args, kwargs : tuple, dict
        Values of the arguments.
    ids : tuple
        The numbers of the tensors among `args`, 0 where there is none; a tuple for a sequence of tensors.
    out : array, or tuple of them
        The value of the result, or of several.
    out_ids : tuple of int
        Their numbers.
    """

    operation: Operation
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    ids: tuple[Any, ...]
    out: Any
    out_ids: tuple[int, ...]

    @property
    def outs(self) -> tuple[Any, ...]:
        """The results."""
        return self.out if type(self.out) is tuple else (self.out,)


class Recorder(Protocol):
    """The interface of active recorders."""

    tracked: set[int]

    def note_plain(
        self,
        operation: Operation,
        which: tuple[bool, ...],
        args: tuple[Any, ...],
        ids: tuple[int, ...],
        out: Any,
        number: int,
    ) -> None:
        """Fast variant of `note` for operators: no keywords, no sequences; `which` arguments are tracked."""

    def note(self, call: Call) -> None:
        """Record a call with one result and tensors among its arguments."""

    def note_wide(self, call: Call) -> None:
        """Like `note`, for several results, or tensors in sequences."""

    def read(self, variable: Any) -> None:
        """Record that a variable is read."""

    def cut(self, how: str, what: str, number: int, made: tuple[int, ...] = ()) -> None:
        """Record that a tracked value is used where nothing tracks it (see `diagnostics.Trail`)."""


class _State(threading.local):
    def __init__(self) -> None:
        self.active: list[Recorder] = []
        self.refused: tuple[tuple[str, int] | None, str, str] | None = None
        """The last refused conversion of a tensor: where, why, and what to do instead."""


STATE = _State()


def cut(how: str, what: str, number: int, made: tuple[int, ...] = ()) -> None:
    """Report to its recorders that a tracked value is used untracked, as `made`."""
    for recorder in STATE.active:
        if number in recorder.tracked:
            recorder.cut(how, what, number, made)


def is_tracked(number: int) -> bool:
    """Whether any recorder of this thread tracks a tensor."""
    for recorder in STATE.active:  # noqa: SIM110 - a generator takes its time
        if number in recorder.tracked:
            return True
    return False


@contextmanager
def suspended(*recorders: Recorder) -> Iterator[None]:
    """Pause some of the active recorders, or all of them if none is named."""
    before = STATE.active
    STATE.active = [r for r in before if r not in recorders] if recorders else []
    try:
        yield
    finally:
        STATE.active = before


def flat_ids(ids: tuple[Any, ...]) -> Iterator[int]:
    """The tensors of a call, also those inside sequences."""
    for item in ids:
        if type(item) is tuple:
            yield from flat_ids(item)
        elif item:
            yield item


def is_floating(value: Any) -> bool:
    """Whether an array or scalar can carry a derivative."""
    return np.asarray(value).dtype.kind in "fc"


def is_complex(values: tuple[Any, ...]) -> bool:
    """Whether values contain a complex scalar or array, also in sequences."""
    for value in values:
        if isinstance(value, list | tuple):
            if is_complex(tuple(value)):
                return True
        elif isinstance(value, complex) or (hasattr(value, "dtype") and value.dtype.kind == "c"):
            return True
    return False
