"""Checkpointed calls: which loops to checkpoint, and segments of which lengths keep a call to its budget.

The recording program runs where its tapes fit.  Where they do not (their size follows from the arguments, or they grow
until the budget is used up), a variant of it runs that checkpoints loops, and that is compiled at that time only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tapegen.backend.numba import memory_limit
from tapegen.errors import Span, TapeMemoryError
from tapegen.ir import traversal
from tapegen.ir.nodes import Block, For, Slice, Stmt, While
from tapegen.pipeline.artifacts.program import Form, Program
from tapegen.pipeline.passes.derivation import Stages
from tapegen.transform.recording import cost_model
from tapegen.transform.recording.checkpoint_state import Refused
from tapegen.transform.recording.decisions import Schedule
from tapegen.transform.recording.tape_sizes import LoopTapes, evaluated

SEGMENT = 2**18
"""Bytes that the tapes of a segment may take even if a shorter one needs less memory: fewer checkpoints are made."""

UNKNOWN = (4096, 1024, 256, 64, 16, 4, 1)
"""Intervals to try where it is unknown what an iteration records."""

FEW = 64
"""Checkpoints where it is unknown how much they take: of these any loop can be reversed."""

LEAST = 8
"""Checkpoints below which a loop of unknown length is refused: it might run again without end."""

MOST_RUNS = 64
"""How often each iteration of a loop may run again on average: with less memory a call is refused."""

_LIST_ITEM = 40
"""Bytes of a scalar in a list, in generated Python."""


JOINT: Form = "joint"
RECORD: Form = "record"
"""The programs that record."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A program that needs less memory, and the segments of its checkpointed loops.

    Attributes
    ----------
    is_sure : bool
        Whether it is known that these segments and checkpoints fit.
    """

    program: Program
    schedules: tuple[Schedule, ...]
    is_sure: bool

    @property
    def numbers(self) -> list[int]:
        """The last arguments of the program."""
        return [number for each in self.schedules for number in (each.interval, each.checkpoints)]


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
            positions = tuple(sorted(loop.position for loop, _ in chosen))
            if not positions or positions in seen:
                return
            seen.add(positions)
            variant = self._variant(positions)
            if variant is not None:
                cut = {loop.position: (loop, times) for loop, times in chosen}
                loops = [cut[position] for position in variant.checkpointed]
                stages = self._loops(variant)
                known = (*(loop.each for loop, _ in loops), *map(stages.checkpoint_bytes, stages.cuts))
                for schedules in self._schedules(stages, loops):
                    yield Attempt(variant, schedules, None not in known)
            depth += 1

    def _loops(self, program: Program) -> Stages:
        return program.stages(scalar=self.form == "joint")

    def _chosen(
        self, loops: Sequence[LoopTapes], depth: int, times: int | None = 1
    ) -> list[tuple[LoopTapes, int | None]]:
        """The loops to checkpoint, and how often they begin in a call, if that is known.

        These are the outermost ones that record much, or loops in them, `depth` levels inside.
        """
        found: list[tuple[LoopTapes, int | None]] = []
        for loop in loops:
            total, each = self.bytes_of(loop.total), self.bytes_of(loop.each)
            if total is not None and total * 4 * len(loops) <= self.budget:
                continue  # it may record
            inside = [inner for inner in loop.inner if self._records_much(inner)]
            too_long = each is not None and each * 2 > self.budget
            if inside and (depth > 0 or too_long or loop.position in self.refused):
                count = self.bytes_of(loop.count)
                within = None if times is None or count is None else times * count
                found += self._chosen(loop.inner, depth - (not too_long), within)
            elif loop.position not in self.refused:
                found.append((loop, times))
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

    def _schedules(
        self, stages: Stages, loops: Sequence[tuple[LoopTapes, int | None]]
    ) -> Iterator[tuple[Schedule, ...]]:
        """Segments to try."""
        share = self.budget // len(loops)
        found = [list(self._segments(stages, k, loop, times, share)) for k, (loop, times) in enumerate(loops)]
        if all(found):
            longest = max(map(len, found))
            yield from zip(*(each + each[-1:] * (longest - len(each)) for each in found), strict=True)

    def _segments(self, stages: Stages, k: int, loop: LoopTapes, times: int | None, share: int) -> Iterator[Schedule]:
        """Segments of one loop to try: none where no number of checkpoints fits, one where all sizes are known.

        The checkpoints of a loop in a loop are held until the backward sweep, `times` as many.
        """
        each = self.bytes_of(loop.each)
        state = self.bytes_of(stages.checkpoint_bytes(stages.cuts[k]))
        if times is None:
            state = None
        if state is not None and times is not None:
            state = max(times, 1) * (state + _LIST_ITEM * (1 + len(stages.cuts[k].state)))
            if state > share:
                return
        if each is None:
            for interval in UNKNOWN:
                yield Schedule(interval, FEW if state is None else max(share // 2 // state, 1))
            return
        each = max(each, 1)
        count = self.bytes_of(loop.count)
        if state is None or count is None:
            interval = max(min(SEGMENT, share // 4) // each, 1)
            checkpoints = FEW if state is None else (share - interval * each) // state
            if checkpoints >= LEAST:
                yield Schedule(interval, checkpoints)
        elif (best := scheduled(max(count, 1), state, each, share)) is not None:
            yield best


def scheduled(count: int, state: int, each: int, share: int) -> Schedule | None:
    """The fastest segments of a loop within a share of memory.

    Parameters
    ----------
    count : int
        Its iterations.
    state, each : int
        The bytes of a checkpoint, and those that an iteration records.
    share : int
        The bytes that it may take.
    """
    least = math.sqrt(count * state / each)  # two levels need the least memory with it
    interval = int(max(least, min(SEGMENT, share // 4) / each, 1))
    interval = min(interval, max(share // 2 // each, int(least), 1))
    segments = -(-count // interval)
    if interval * each + segments * state <= share:
        return Schedule(interval, segments)
    lengths = itertools.takewhile(lambda length: length * each + state <= share, (2**k for k in itertools.count()))
    found = [Schedule(length, (share - length * each) // state) for length in lengths]
    best = min(found, key=lambda each: each.runs(count), default=None)
    return best if best is not None and best.runs(count) <= MOST_RUNS * count else None


def planned(program: Program, form: Form, leaves: Sequence[Any]) -> tuple[Attempt | None, list[str]] | None:
    """What runs for these arguments, in words, and with which checkpoints; None where memory is of no concern."""
    budget = memory_limit.measured_limit(program.options.budget)
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
    for cut, schedule, position in zip(stages.cuts, attempt.schedules, attempt.program.checkpointed, strict=True):
        loop = loops[position]
        place = "a loop" if loop.loop.origin is None else f"the loop of line {loop.loop.origin.line}"
        each, count = planner.bytes_of(loop.each), planner.bytes_of(loop.count)
        state = planner.bytes_of(stages.checkpoint_bytes(cut))
        records = "records" if each is None else f"records {each:,} bytes"
        held = "" if state is None else f" of {state:,} bytes"
        segments = None if count is None else -(-count // schedule.interval)
        most, runs, least = schedule.checkpoints, 1.0, "at least" if count is None else "about"
        if count is None:
            number = f"up to {most:,} checkpoints{held}, segments"
        elif segments is not None and segments > most:
            number, runs = f"{most:,} checkpoints{held}, segments", schedule.runs(count) / count
        else:
            number = f"{segments:,} checkpoints{held}, one every {schedule.interval:,} iterations"
        if "segments" in number:
            number += f" of {schedule.interval:,} iterations"
        lines.append(f"{place} {records} in each iteration: {number}")
        lines.append(f"that takes {least} {_slowdown(stages, cut.loop, runs):.1f} times as long as recording")
    return attempt, lines


def _flat(loops: Sequence[LoopTapes]) -> Iterator[LoopTapes]:
    for loop in loops:
        yield loop
        yield from _flat(loop.inner)


def _slowdown(stages: Stages, loop: For | While, runs: float) -> float:
    """The time of a gradient with a loop that runs again, by the cost model: in units of that without."""
    undone = next(stmt for stmt in traversal.statements(stages.sweeps.backward) if _reverses(stages, stmt, loop))
    forward, backward = _work(loop.body), _work(undone.blocks[0])
    return 1.0 + runs * forward / max(forward + backward, 1)


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
