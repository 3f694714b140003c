"""Any program with each of its loops checkpointed, against the recording program: bit for bit, in generated Python."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapegen import Differentiable
from tapegen.errors import TapegenError
from tapegen.pipeline.artifacts import execution
from tapegen.pipeline.artifacts.program import Program
from tapegen.transform.recording.checkpoint_state import Refused
from tapegen.transform.recording.tape_sizes import LoopTapes

SCHEDULES = ((1, 1000), (2, 1000), (100, 1000), (1, 1), (1, 2), (1, 3), (2, 2), (3, 1))
"""Iterations of a segment, and checkpoints."""


@dataclass
class Found:
    """What the comparisons found.

    Attributes
    ----------
    checked : int
        The number of loops that were checkpointed.
    refused : list of str
        Why others were not.
    wrong : list of str
        Differences.
    """

    checked: int = 0
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def compare(function: Differentiable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], name: str) -> Found:
    """Compare each variant that checkpoints one loop with the recording program."""
    found = Found()
    try:
        call = function._specialise(tuple(args), dict(kwargs))
        program = call.program
        if program.never_returns:
            return found
        positions = [loop.position for loop in flat(program.stages(scalar=False).loops())]
        leaves = call.leaves()
        expected = run(program, leaves, ()) if positions else ()
    except Exception:  # others judge the recording program
        return found
    for position in positions:
        try:
            variant = program.with_checkpoints((position,))
            variant.stages(scalar=False)
        except Refused as refusal:
            found.refused.append(refusal.reason)
            continue
        found.checked += 1
        for schedule in SCHEDULES:
            try:
                given = run(variant, leaves, schedule)
                same = all(map(equal, given, expected))
            except Exception as error:
                found.wrong.append(f"{name}, loop {position}, segments {schedule}: {type(error).__name__}: {error}")
                break
            if not same:
                found.wrong.append(f"{name}, loop {position}, segments {schedule}")
                break
    return found


def flat(loops: Sequence[LoopTapes]) -> Iterator[LoopTapes]:
    """The loops and those in them."""
    for loop in loops:
        yield loop
        yield from flat(loop.inner)


def run(program: Program, leaves: Sequence[Any], schedule: Sequence[int]) -> list[Any]:
    """Results, arguments as they are left, and cotangents, twice."""
    given = copy.deepcopy(list(leaves))
    with np.errstate(all="ignore"):
        values = execution.run(program, "record", [*given, *schedule])
        outline = program.outline("record")
        count = len(values) - len(outline.kept)
        rng = np.random.default_rng(3)
        active = itertools.compress(values[:count], program.selection.active_results(scalar=False))
        seeds = [_seed(value, rng) for value in active]
        gradients: list[Any] = []
        for _ in range(2):
            kept = [list(item) if isinstance(item, list) else item for item in values[count:]]
            gradients += execution.run(program, "pullback", [*kept, *copy.deepcopy(seeds)])
    return [*values[:count], *given, *gradients]


def _seed(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, list):
        return [_seed(item, rng) for item in value]
    if isinstance(value, np.ndarray):
        return np.asarray(rng.uniform(0.5, 1.5, value.shape), value.dtype)
    return type(value)(rng.uniform(0.5, 1.5))


def equal(a: Any, b: Any) -> bool:
    """Whether two results are the same bit for bit."""
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, np.random.Generator | np.random.RandomState):
        return True
    return bool(np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc"))


__all__ = ["Found", "TapegenError", "compare"]
