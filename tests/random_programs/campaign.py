"""Many programs in a row: what passed, what failed, the failures made small."""

from __future__ import annotations

import itertools
import pathlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from tests.random_programs.checks import Failure, Verdict, check
from tests.random_programs.corpus import FOLDER, save
from tests.random_programs.generator import generate, profiles
from tests.random_programs.plain import is_settled
from tests.random_programs.program import Program
from tests.random_programs.shrink import OutOfTime, deadline, shrink

SECONDS_PER_PROGRAM = {"python": 20.0, "numba": 300.0}


@dataclass
class Found:
    """A failure: the program as it was drawn, and the smallest one that fails alike."""

    program: Program
    failure: Failure
    small: Program
    path: pathlib.Path | None = None

    def __str__(self) -> str:
        head = (
            f"{self.failure.oracle} / {self.failure.kind}  (profile {self.program.profile}, seed {self.program.seed})"
        )
        args = "\n".join(f"    {text}" for text in self.small.args)
        saved = f"\nsaved as {self.path}" if self.path else ""
        return f"{head}\n{self.failure.detail}\n{self.small.source}\narguments, wrt={self.small.wrt}:\n{args}{saved}"


@dataclass
class Summary:
    """What a campaign found."""

    programs: int = 0
    passed: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    buckets: Counter[tuple[str, str]] = field(default_factory=Counter)
    found: list[Found] = field(default_factory=list)
    ratio: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        rate = self.programs / self.seconds * 60 if self.seconds else 0.0
        lines = [f"{self.programs} programs in {self.seconds:.0f} s ({rate:.0f} a minute)"]
        lines.append("agreed:  " + ", ".join(f"{name} {n}" for name, n in sorted(self.passed.items())))
        lines.append(f"largest rounding error: {self.ratio:.3g} u S")
        if self.skipped:
            lines.append("skipped: " + ", ".join(f"{name} {n}" for name, n in self.skipped.most_common()))
        for (oracle, kind), n in self.buckets.most_common():
            lines.append(f"FAILED {n:6d}  {oracle} / {kind}")
        return "\n".join(lines)


def drawn(count: int, seed: int, names: Iterable[str], longest: int | None = None) -> Iterator[Program]:
    """Programs of the profiles in turn, of at most `longest` lines."""
    pool = itertools.cycle(tuple(names))
    seeds = {name: itertools.count(seed) for name in names}
    for name in itertools.islice(pool, count):
        programs = (generate(each, name) for each in seeds[name])
        yield next(p for p in programs if longest is None or p.source.count("\n") <= longest)


def judged(program: Program, backend: str) -> Verdict:
    """The verdict on one program; one that runs for ever is a failure too."""
    try:
        with deadline(SECONDS_PER_PROGRAM[backend]):
            return check(program, backend)
    except OutOfTime as late:
        verdict = Verdict()
        verdict.fail("time", "too long", str(late))
        return verdict


def verdicts(programs: Iterable[Program], backend: str) -> Iterator[tuple[Program, Verdict]]:
    """Verdicts one by one.  Compiled code runs in a process of its own: a crash of it is a finding, not the end."""
    if backend == "python":
        for program in programs:
            yield program, judged(program, backend)
        return
    pool = ProcessPoolExecutor(max_workers=1)
    try:
        for program in programs:
            try:
                yield program, pool.submit(judged, program, backend).result()
            except BrokenProcessPool:
                verdict = Verdict()
                verdict.fail("crash", "process died", "compiled code ended the process")
                yield program, verdict
                pool = ProcessPoolExecutor(max_workers=1)
    finally:
        pool.shutdown()


def same_failure(failure: Failure, plain: str, backend: str) -> Callable[[Program], bool]:
    """Whether a program fails in the same way, and plain Python does with it what it did before."""

    def fails(program: Program) -> bool:
        verdict = check(program, backend)
        same = verdict.plain == plain and any(found.bucket == failure.bucket for found in verdict.failures)
        return same and is_settled(program)

    return fails


def campaign(
    count: int,
    seed: int = 0,
    names: Iterable[str] = (),
    backend: str = "python",
    *,
    longest: int | None = None,
    shrinks: int = 10,
    folder: pathlib.Path | None = FOLDER,
    progress: Callable[[Summary], None] | None = None,
    report: Callable[[Found], None] = lambda found: None,
    enough: Callable[[Summary], bool] = lambda summary: False,
) -> Summary:
    """Draw programs, judge them, make the first failure of each kind small.

    Parameters
    ----------
    count, seed : int
        How many programs, and the first seed.
    names : iterable of str
        Profiles; all of them when empty.
    backend : {"python", "numba"}
        How the generated code runs.
    longest : int, optional
        How many lines a program may have.
    shrinks : int
        How many kinds of failure are made small.
    folder : path or None
        Where small failures are written.
    progress : callable
        Called after each program.
    report : callable
        Called with each small failure as it is found.
    enough : callable
        Ends the campaign early.
    """
    summary, start = Summary(), time.monotonic()
    for program, verdict in verdicts(drawn(count, seed, tuple(names) or profiles(), longest), backend):
        summary.programs += 1
        summary.passed += verdict.passed
        summary.skipped += verdict.skipped
        summary.ratio = max(summary.ratio, verdict.ratio)
        for failure in verdict.failures[:1]:
            new = failure.bucket not in summary.buckets
            summary.buckets[failure.bucket] += 1
            if new and len(summary.found) < shrinks:
                summary.found.append(reduced(program, failure, verdict.plain, backend, folder))
                report(summary.found[-1])
        summary.seconds = time.monotonic() - start
        if progress is not None:
            progress(summary)
        if enough(summary):
            break
    return summary


def reduced(program: Program, failure: Failure, plain: str, backend: str, folder: pathlib.Path | None) -> Found:
    """The smallest program that fails alike, written to the corpus."""
    small = program
    if failure.oracle != "time" and failure.kind != "process died":
        small = shrink(program, same_failure(failure, plain, backend))
    path = save(small, failure, folder) if folder is not None else None
    return Found(program, failure, small, path)
