"""Common base of tapes and accumulators: recorders make records of calls on the tensors that they track."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.tape.engine.operations import Operation
from tapegen.tape.engine.stack_frames import user_span
from tapegen.tape.engine.state import Call
from tapegen.tape.tensors.records import Record, make_record, make_wide_record


class Following(abc.ABC):
    """A recorder that tracks tensors through calls.

    Attributes
    ----------
    tracked : set of int
        The numbers of the tracked tensors.
    """

    _keeps_everything = False

    def __init__(self) -> None:
        self.tracked: set[int] = set()

    def note_plain(
        self,
        operation: Operation,
        which: tuple[bool, ...],
        args: tuple[Any, ...],
        ids: tuple[int, ...],
        out: Any,
        number: int,
    ) -> None:
        """Record a call (internal; see `state.Recorder`)."""
        self.note(Call(operation, args, {}, ids, out, (number,)))

    def note(self, call: Call) -> None:
        """Record a call (internal; see `state.Recorder`)."""
        kind = call.out.dtype.kind
        if kind == "O":
            _refuse_objects(call)
        record = make_record(call, self.tracked, self._keeps_everything) if kind in "fc" else None
        self._take(call, record, call.out_ids)

    def note_wide(self, call: Call) -> None:
        """Record a call (internal; see `state.Recorder`)."""
        _refuse_objects(call)
        pairs = zip(call.outs, call.out_ids, strict=True)
        floating = [number for item, number in pairs if number and item.dtype.kind in "fc"]
        self._take(call, make_wide_record(call, self.tracked, self._keeps_everything) if floating else None, floating)

    @abc.abstractmethod
    def _take(self, call: Call, record: Record | None, floating: Sequence[int]) -> None:
        """Process the record of a call with the numbers of its floating results; None where no derivative passes."""

    @abc.abstractmethod
    def read(self, variable: Any) -> None:
        """Record that a variable is read (internal)."""

    @abc.abstractmethod
    def cut(self, how: str, what: str, number: int, made: tuple[int, ...] = ()) -> None:
        """Record that a tracked value is used where nothing tracks it (internal)."""


def _refuse_objects(call: Call) -> None:
    """Refuse arrays of Python objects: operations on their items are unknown."""
    if any(item.dtype.kind == "O" for item in call.outs if hasattr(item, "dtype")):
        raise NotDifferentiable(
            f"'{call.operation.name}' makes Python objects of a tensor that is being recorded, which leaves the tape.",
            "Write it with NumPy functions of tensors, or use .numpy() if no gradient shall pass here.",
            user_span(),
        )
