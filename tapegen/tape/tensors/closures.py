"""Operations with a given pullback function: transposes, custom gradients, compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegen.tape.engine.operations import Operation
from tapegen.tape.engine.state import STATE, Call, is_tracked
from tapegen.tape.tensors.tensor import fresh, operand


class Closure(Operation):
    """An operation with its own pullback.

    Attributes
    ----------
    pull : callable
        Accepts a cotangent per result (None where there is none); returns one per argument (None: not connected).
    push : callable or None
        Accepts a tangent per argument (None where there is none); returns one per result.  None, or a function that
        returns None: tangents go through the transpose of `pull`.
    """

    __slots__ = ("pull", "push", "title")

    def __init__(self, title: str, pull: Callable[..., Any], push: Callable[..., Any] | None) -> None:
        super().__init__(pull, None)
        self.kind = "closure"
        self.title = title
        self.pull = pull
        self.push = push

    @property
    def name(self) -> str:
        return self.title


def closure(
    title: str,
    run: Callable[..., Sequence[Any]],
    pull: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    push: Callable[..., Any] | None = None,
) -> list[Any]:
    """Run a function of values and record it with its own pullback."""
    pairs = [operand(arg) for arg in args]
    results = run(*(value for value, _ in pairs))
    return recorded(Closure(title, pull, push), pairs, results)


def recorded(operation: Closure, pairs: Sequence[tuple[Any, int]], results: Sequence[Any]) -> list[Any]:
    """Tensors of results, recorded as computed from the operands (values with their numbers)."""
    outs = [fresh(result if hasattr(result, "dtype") else np.asarray(result)) for result in results]
    ids = tuple(number for _, number in pairs)
    if any(number and is_tracked(number) for number in ids):
        args = tuple(value for value, _ in pairs)
        call = Call(operation, args, {}, ids, tuple(out._value for out in outs), tuple(out._id for out in outs))
        for recorder in STATE.active:
            if any(number in recorder.tracked for number in ids):
                recorder.note_wide(call)
    return outs
