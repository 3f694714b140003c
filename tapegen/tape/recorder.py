"""What tapes and accumulators have in common: they make records of calls on what they follow."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.tape.engine.operations import Operation
from tapegen.tape.engine.stack_frames import user_span
from tapegen.tape.engine.state import Call
from tapegen.tape.tensors.records import Record, made, made_wide


class Following(abc.ABC):
    """A recorder that follows tensors through calls.

    Attributes
    ----------
    tracked : set of int
        The numbers of what is followed.
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
        """Follow a call (of the machinery; see `state.Recorder`)."""
        self.note(Call(operation, args, {}, ids, out, (number,)))

    def note(self, call: Call) -> None:
        """Follow a call (of the machinery; see `state.Recorder`)."""
        kind = call.out.dtype.kind
        if kind == "O":
            _refuse_objects(call)
        record = made(call, self.tracked, self._keeps_everything) if kind in "fc" else None
        self._take(call, record, call.out_ids)

    def note_wide(self, call: Call) -> None:
        """Follow a call (of the machinery; see `state.Recorder`)."""
        _refuse_objects(call)
        pairs = zip(call.outs, call.out_ids, strict=True)
        floating = [number for item, number in pairs if number and item.dtype.kind in "fc"]
        self._take(call, made_wide(call, self.tracked, self._keeps_everything) if floating else None, floating)

    @abc.abstractmethod
    def _take(self, call: Call, record: Record | None, floating: Sequence[int]) -> None:
        """Take the record of a call with the numbers of its floating results; None where no derivative passes."""

    @abc.abstractmethod
    def read(self, variable: Any) -> None:
        """A variable is read (of the machinery)."""

    @abc.abstractmethod
    def cut(self, how: str, what: str, number: int, made: tuple[int, ...] = ()) -> None:
        """A followed value goes on where nobody follows it (of the machinery)."""


def _refuse_objects(call: Call) -> None:
    """Refuse arrays of Python objects: nobody knows what has been computed with what they hold."""
    if any(item.dtype.kind == "O" for item in call.outs if hasattr(item, "dtype")):
        raise NotDifferentiable(
            f"'{call.operation.name}' makes Python objects of a tensor that is being recorded, which leaves the tape.",
            "Write it with NumPy functions of tensors, or use .numpy() if no gradient shall pass here.",
            user_span(),
        )
