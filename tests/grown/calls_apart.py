"""Judges calls in processes of their own: what ends a process is a finding, not the end of the run."""

from __future__ import annotations

import dataclasses
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol

from tests.grown.checks import FINE, SECONDS, TIMEOUT, Verdict, judge
from tests.grown.program import Kept

CRASH = "CRASH"
MOST = 60  # numbers of the arguments that are moved: plain calls take no time
JACOBIANS = 4  # one in so many programs: they take longest, and differ least from function to function
PATIENCE = 4.0 * SECONDS  # compiled code does not look at signals
FORK = multiprocessing.get_context("fork")  # so that nothing is imported again

Trying = Callable[[str], None]
"""Is told of each call of plain NumPy before it is made."""


class Programs(Protocol):
    """Makes programs with numbers."""

    def programs(self, count: int, first: int = 0, trying: Trying = ...) -> Iterable[tuple[int, str]]:
        """So many programs, whose numbers begin with `first` and increase."""
        ...


@dataclasses.dataclass(frozen=True)
class Given:
    """Programs that are there already."""

    texts: Sequence[str]

    def programs(self, count: int, first: int = 0, trying: Trying = str) -> Iterator[tuple[int, str]]:
        """They, from a number on."""
        yield from list(enumerate(self.texts))[first:]


@dataclasses.dataclass(frozen=True)
class Said:
    """What a process says of a program or call: None before it runs, then the verdict."""

    number: int
    text: str
    verdict: Verdict | None = None


def serve(channel: Connection, made: Programs, stages: Sequence[str], count: int, first: int) -> None:
    """What a process does: it says what it is going to run, and what became of it."""
    at, kept = first, Kept()

    def trying(text: str) -> None:
        channel.send(Said(at, text))

    for number, text in made.programs(count, first, trying):
        channel.send(Said(number, text))
        some = [stage for stage in stages if number % JACOBIANS == 0 or stage != "jacobian"]
        channel.send(Said(number, text, judged_in_company(text, some, kept)))
        at = number + 1


def judged_in_company(text: str, stages: Sequence[str], kept: Kept) -> Verdict:
    """The verdict on a program whose function may have been called before, with other arguments."""
    seconds = 3.0 * SECONDS if "compiled" in stages else SECONDS  # numba takes long for several calls in one program
    verdict = judge(text, stages, seconds, kept, MOST)
    if verdict.kind in FINE:
        return verdict
    alone = judge(text, stages, seconds, most=MOST)
    if alone.kind not in FINE:
        return alone
    return dataclasses.replace(verdict, detail=f"after other calls of this function: {verdict.detail}")


class Apart:
    """A process that judges programs.

    Attributes
    ----------
    is_late : bool
        Whether it was ended because it said nothing for too long.
    code : int
        With which it ended; 0 if nothing is wrong.
    """

    def __init__(self, made: Programs, stages: Sequence[str], count: int = 1, first: int = 0) -> None:
        self.channel, theirs = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=serve, args=(theirs, made, stages, count, first), daemon=True)
        self.process.start()
        theirs.close()
        self.is_late = False
        self.code = 0

    def messages(self) -> Iterator[Said]:
        """What it says until it ends."""
        try:
            while self.channel.poll(PATIENCE):
                yield self.channel.recv()
            self.is_late = True
        except EOFError:
            pass
        finally:
            if self.is_late:
                self.process.kill()
            self.process.join()
            self.channel.close()
            self.code = self.process.exitcode or 0


def judged(made: Programs, stages: Sequence[str], count: int) -> Iterator[tuple[str, Verdict]]:
    """Programs, and what became of them; where a process ends too early, another one goes on with the next number."""
    first = 0
    while count > 0:
        apart, last, done = Apart(made, stages, count, first), Said(first, ""), 0
        for last in apart.messages():
            if last.verdict is not None:
                done += 1
                yield last.text, last.verdict
        if not apart.code:
            return
        count -= done + 1
        first = last.number + 1
        yield last.text, verdict_of(apart, last, done, stages)


def verdict_of(apart: Apart, last: Said, done: int, stages: Sequence[str]) -> Verdict:
    """What is said of the program with which a process ended.

    Memory that a call damages may end the process with a later one, so the program runs once more alone.
    """
    if apart.is_late:
        return Verdict(TIMEOUT, "process")
    again: Any = Apart(Given([last.text]), stages)
    list(again.messages())
    where = "alone too" if again.code else f"not alone, but after {done} others"
    return Verdict(CRASH, "process", f"ended with {apart.code}, {where}")
