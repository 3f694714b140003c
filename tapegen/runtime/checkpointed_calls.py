"""Checkpointed calls: which loops to checkpoint, and segments of which lengths keep a call to its budget.

The recording program runs where its tapes fit.  Where they do not (their size follows from the arguments, or they grow
until the budget is used up), a variant of it runs that checkpoints loops, and that is compiled at that time only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tapegen.backend.numba import memory_limit
from tapegen.errors import Span, TapeMemoryError
from tapegen.ir import traversal
from tapegen.ir.nodes import Block, For, Slice, Stmt, While
from tapegen.pipeline.artifacts.program import Form, Program
from tapegen.pipeline.derivation import Stages
from tapegen.transform.recording import cost_model
from tapegen.transform.recording.checkpoints import Refused
from tapegen.transform.recording.tape_sizes import LoopTapes, evaluated

SEGMENT = 2**18
"""Bytes that the tapes of a segment may take even if a shorter one needs less memory: fewer checkpoints are made."""

LONGEST = 2**22
"""The iterations of a segment where the loop may never end: calls look for interrupts in between."""

UNKNOWN = (4096, 1024, 256, 64, 16, 4, 1)
"""Intervals to try where it is unknown what an iteration records."""

_LIST_ITEM = 40
"""Bytes of a scalar in a list, in generated Python."""


JOINT: Form = "joint"
RECORD: Form = "record"
"""The programs that record."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A program that needs less memory, and the intervals of its checkpointed loops.

    Attributes
    ----------
    is_sure : bool
        Whether it is known that segments of these lengths fit.
    """

    program: Program
    intervals: tuple[int, ...]
    is_sure: bool


class Planner:
    """Chooses loops and intervals for one call.

    Parameters
    ----------
    program : Program
        The recording program.
    form : Form
        "joint" or "record".
    arguments : sequence
        The arguments of the call.
    budget : int
        The bytes that tapes and checkpoints may take.
    """

    def __init__(self, program: Program, form: Form, arguments: Sequence[Any], budget: int) -> None:
        self.program, self.form, self.budget = program, form, budget
        params = program.lowered.function.params
        self.names = [param.name for param in params]
        self.values = list(arguments[: len(params)])
        self.refused: dict[int, str] = {}

    def bytes_of(self, text: str | None) -> int | None:
        """A size for the arguments of this call."""
        return None if text is None else int(evaluated(text, self.names)(*self.values))

    def attempts(self) -> Iterator[Attempt]:
        """What may fit, from the fastest."""
        found = self._loops(self.program).loops()
        depth = 0
        seen: set[tuple[int, ...]] = set()
        while True:
            chosen = self._chosen(found, depth)
            positions = tuple(sorted(loop.position for loop in chosen))
            if not positions or positions in seen:
                return
            seen.add(positions)
            variant = self._variant(positions)
            if variant is not None:
                cut = {loop.position: loop for loop in chosen}
                loops = [cut[position] for position in variant.checkpointed]
                is_sure = all(loop.each is not None for loop in loops)
                for intervals in self._intervals(self._loops(variant), loops):
                    yield Attempt(variant, intervals, is_sure)
            depth += 1

    def _loops(self, program: Program) -> Stages:
        return program.stages(scalar=self.form == "joint")

    def _chosen(self, loops: Sequence[LoopTapes], depth: int) -> list[LoopTapes]:
        """The loops to checkpoint: the outermost ones that record much, or loops in them, `depth` levels inside."""
        found: list[LoopTapes] = []
        for loop in loops:
            total, each = self.bytes_of(loop.total), self.bytes_of(loop.each)
            if total is not None and total * 4 * len(loops) <= self.budget:
                continue  # it may record
            inside = [inner for inner in loop.inner if self._records_much(inner)]
            too_long = each is not None and each * 2 > self.budget
            if inside and (depth > 0 or too_long or loop.position in self.refused):
                found += self._chosen(loop.inner, depth - (not too_long))
            elif loop.position not in self.refused:
                found.append(loop)
        return found

    def _records_much(self, loop: LoopTapes) -> bool:
        total = self.bytes_of(loop.total)
        return loop.position not in self.refused and (total is None or total * 4 > self.budget)

    def _variant(self, positions: tuple[int, ...]) -> Program | None:
        """The program that checkpoints these loops, but for those that cannot be."""
        while positions:
            variant = self.program.with_checkpoints(positions)
            try:
                self._loops(variant)
            except Refused as refusal:
                self.refused[refusal.position] = refusal.reason
                positions = tuple(position for position in positions if position != refusal.position)
            else:
                return variant
        return None

    def _intervals(self, stages: Stages, loops: Sequence[LoopTapes]) -> Iterator[tuple[int, ...]]:
        """Intervals to try."""
        share = self.budget // len(loops)
        single = [self._interval(stages, k, loop, share) for k, loop in enumerate(loops)]
        if None not in single:
            fits = [found for found in single if found]
            if len(fits) == len(single):
                yield tuple(fits)
            return
        for interval in UNKNOWN:
            yield tuple(interval if found is None else max(found, 1) for found in single)

    def _interval(self, stages: Stages, k: int, loop: LoopTapes, share: int) -> int | None:
        """The iterations of a segment; 0 where no number fits, None where it is unknown what an iteration records."""
        each = self.bytes_of(loop.each)
        if each is None:
            return None
        each = max(each, 1)
        state = self.bytes_of(stages.checkpoint_bytes(stages.cuts[k]))
        count = self.bytes_of(loop.count)
        if state is None or count is None:
            most = min(share // 2 // each, LONGEST, max(share // 2**4, 2**28) // each)
            return most if state is None or 2 * state <= share else 0
        state += _LIST_ITEM
        best = math.sqrt(count * state / each)  # the least memory in sum
        interval = int(max(best, min(SEGMENT, share // 4) / each, 1))
        interval = min(interval, max(share // 2 // each, int(best), 1))
        needed = interval * each + -(-count // interval) * state
        return interval if needed <= share else 0


def planned(program: Program, form: Form, leaves: Sequence[Any]) -> tuple[Attempt | None, list[str]] | None:
    """What runs for these arguments, in words, and with which checkpoints; None where memory is of no concern."""
    budget = memory_limit.limit_of(program.options.budget)
    predicted = program.recorded_bytes(form)(*leaves)
    is_given = program.options.memory is not None
    if predicted <= budget and form not in program.outgrown:
        return (None, [f"records {predicted:,} of {budget:,} bytes, without checkpoints"]) if is_given else None
    planner = Planner(program, form, leaves, budget)
    attempt = next(planner.attempts(), None)
    if attempt is None:
        name = program.lowered.function.name
        return None, [too_small(planner, name, program.lowered.function.origin, predicted).reason]
    stages = attempt.program.stages(scalar=form == JOINT)
    loops = {loop.position: loop for loop in _flat(program.stages(scalar=form == JOINT).loops())}
    lines = [f"would record {predicted:,} bytes, and may take {budget:,}"] if predicted > budget else []
    for cut, interval, position in zip(stages.cuts, attempt.intervals, attempt.program.checkpointed, strict=True):
        loop = loops[position]
        place = "a loop" if loop.loop.origin is None else f"the loop of line {loop.loop.origin.line}"
        each, count = planner.bytes_of(loop.each), planner.bytes_of(loop.count)
        state = planner.bytes_of(stages.checkpoint_bytes(cut))
        records = "records" if each is None else f"records {each:,} bytes"
        held = "" if state is None else f" of {state:,} bytes"
        number = "checkpoints" if count is None else f"{-(-count // interval):,} checkpoints"
        lines.append(f"{place} {records} in each iteration: {number}{held}, one every {interval:,} iterations")
        lines.append(f"that takes about {_slowdown(stages, cut.loop):.1f} times as long as recording")
    return attempt, lines


def _flat(loops: Sequence[LoopTapes]) -> Iterator[LoopTapes]:
    for loop in loops:
        yield loop
        yield from _flat(loop.inner)


def _slowdown(stages: Stages, loop: For | While) -> float:
    """The time of a gradient with a loop that runs once more, by the cost model: in units of that without."""
    undone = next(stmt for stmt in traversal.statements(stages.sweeps.backward) if _reverses(stages, stmt, loop))
    forward, backward = _work(loop.body), _work(undone.blocks[0])
    return 1.0 + forward / max(forward + backward, 1)


def _reverses(stages: Stages, stmt: Stmt, loop: For | While) -> bool:
    scopes = stages.sweeps.scopes_of.get(stmt)
    return isinstance(stmt, For) and scopes is not None and scopes[0].header is loop


def _work(block: Block) -> int:
    """The work of an iteration, inner loops weighed by the trip count that the cost model assumes."""
    total = 0
    for stmt in block:
        times = cost_model.TRIPS if isinstance(stmt, (For, While)) else 1
        total += sum(cost_model.work(part) for part in stmt.headers if not isinstance(part, Slice))
        total += sum(times * _work(inner) for inner in stmt.blocks)
    return total


def loop_places(loops: Sequence[LoopTapes]) -> dict[int, Span | None]:
    """The user's loops by their positions."""
    found: dict[int, Span | None] = {}
    for loop in loops:
        found[loop.position] = loop.loop.origin
        found |= loop_places(loop.inner)
    return found


def too_small(planner: Planner, name: str, whole: Span | None, predicted: int | None) -> TapeMemoryError:
    """The error of a call that no program keeps within its budget."""
    stages = planner.program.stages(scalar=planner.form == "joint")
    loops = stages.loops()
    places = loop_places(loops)
    place = next((loop.loop.origin for loop in loops if loop.loop.origin is not None), whole)
    reasons = [
        f"the loop of line {span.line} cannot be checkpointed: {planner.refused[position]}"
        for position, span in places.items()
        if position in planner.refused and span is not None
    ]
    records = f"{predicted} bytes" if predicted else f"more{memory_limit.how_far()}"
    line = f" in the loop of line {place.line}" if place is not None and loops else ""
    each = [planner.bytes_of(loop.each) for loop in loops]
    size = f" ({each[0]} bytes in each iteration)" if each and each[0] is not None else ""
    reason = f"; {'; '.join(reasons)}" if reasons else ", and too few checkpoints fit" if loops else ""
    return TapeMemoryError(
        f"what the derivative of {name} records{line}{size} does not fit into memory: it takes {records}, the budget "
        f"is {planner.budget} bytes{reason}.",
        'Give it more (memory="2GB"), use fewer iterations or smaller arrays, or use jvp, which records nothing.',
        place,
    )
