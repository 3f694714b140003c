"""Which planted defects random programs find, and within how many."""

from __future__ import annotations

import pathlib
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from tests.random_programs.adapter import Derivation
from tests.random_programs.campaign import drawn
from tests.random_programs.checks import Failure, check
from tests.random_programs.corpus import module_text
from tests.random_programs.defects.switch import Defect, Reach
from tests.random_programs.plain import is_settled
from tests.random_programs.program import Program
from tests.random_programs.shrink import OutOfTime, deadline, shrink

FOLDER = pathlib.Path(__file__).parent.parent.parent / "programs" / "random" / "defects"
SECONDS = 20.0


@dataclass
class Hunted:
    """What became of one defect.

    Attributes
    ----------
    programs : int
        How many were drawn up to the one that found it; all of them if none did.
    touched : int
        In how many the defect changed the generated text.
    finder : Program or None
        The program that found it.
    failure : Failure or None
        How it failed.
    """

    defect: Defect
    programs: int = 0
    touched: int = 0
    finder: Program | None = None
    failure: Failure | None = None

    def __str__(self) -> str:
        if self.finder is None or self.failure is None:
            return f"NOT FOUND in {self.programs:6d}  {self.defect.name}  (changed the text of {self.touched})"
        return f"found after {self.programs:6d}  {self.defect.name}  [{self.failure.oracle} {self.failure.kind[:40]}]"


def hunt(
    defects: Sequence[Defect],
    count: int,
    seed: int,
    names: Iterable[str],
    report: Callable[[Hunted], None] = lambda hunted: None,
    progress: Callable[[int, int], None] = lambda programs, left: None,
    minutes: float = 1e9,
) -> list[Hunted]:
    """Draw programs until every defect is found.

    A program counts only if it passes without the defect; that is looked at when it fails with one.
    """
    hunted = [Hunted(defect) for defect in defects]
    left = list(hunted)
    watched = {defect.code for defect in defects if defect.code is not None}
    end = time.monotonic() + 60 * minutes
    for k, program in enumerate(drawn(count, seed, names), 1):
        if not left or time.monotonic() > end:
            break
        for one in left:
            one.programs = k
        chosen = [one for one in left if re.search(one.defect.needs, program.source)]
        if not chosen:
            continue
        try:
            derivation = Derivation(program)
            right, reach = traced(derivation, watched)
        except Exception:  # refused, or one of the failures that await repair
            continue
        passes: bool | None = None
        for one in chosen:
            if one.defect.in_text and not one.defect.reached(reach):
                continue
            with one.defect.plant():
                if one.defect.in_text and derivation.text() == right:
                    continue
                one.touched += 1
                failure = first_failure(program)
            if failure is None:
                continue
            passes = first_failure(program) is None if passes is None else passes
            if not passes:
                break
            one.finder, one.failure = program, failure
            left.remove(one)
            report(one)
        progress(k, len(left))
    return hunted


def traced(derivation: Derivation, watched: Set[CodeType]) -> tuple[str, Reach]:
    """The text of a derivative, and what ran to make it."""
    lines: set[tuple[CodeType, int]] = set()

    def each_line(frame: FrameType, event: str, arg: object) -> Any:
        lines.add((frame.f_code, frame.f_lineno))
        return each_line

    def each_call(frame: FrameType, event: str, arg: object) -> Any:
        return each_line if frame.f_code in watched else None

    before = sys.gettrace()
    sys.settrace(each_call)
    try:
        text = derivation.text()
    finally:
        sys.settrace(before)
    return text, Reach(lines, derivation.functions())


def first_failure(program: Program) -> Failure | None:
    """How a program fails; whatever goes wrong in tapegen is a failure too."""
    try:
        with deadline(SECONDS):
            verdict = check(program, thorough=True)
    except OutOfTime as late:
        return Failure("time", "too long", str(late))
    except Exception as error:
        return Failure("crash", type(error).__name__, str(error))
    return verdict.failures[0] if verdict.failures else None


def finds(defect: Defect, program: Program) -> bool:
    """Whether a program fails with a defect and passes without it."""
    with defect.plant():
        failure = first_failure(program)
    return failure is not None and first_failure(program) is None


def store(hunted: Hunted, seconds: float = 20.0) -> pathlib.Path:
    """Keep the smallest program that finds a defect."""
    assert hunted.finder is not None
    assert hunted.failure is not None
    oracle = hunted.failure.oracle

    def still(program: Program) -> bool:
        with hunted.defect.plant():
            failure = first_failure(program)
        found = failure is not None and failure.oracle == oracle
        return found and first_failure(program) is None and is_settled(program)

    small = shrink(hunted.finder, still, seconds=seconds)
    if not finds(hunted.defect, small):
        small = hunted.finder
    path = path_of(hunted.defect)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(module_text(small, Failure("finds", hunted.defect.name, "")), encoding="utf-8")
    return path


def path_of(defect: Defect) -> pathlib.Path:
    """The file of the program that finds a defect."""
    words = "".join(letter if letter.isalnum() else " " for letter in defect.name).split()
    return FOLDER / f"{'_'.join(words)}.py"


def stored(defects: Iterable[Defect]) -> Iterator[tuple[Defect, pathlib.Path]]:
    """The defects for which a program is kept."""
    for defect in defects:
        path = path_of(defect)
        if path.exists():
            yield defect, path
