"""Every function that has a rule, called with random combinations of its parameters: `python -m tests.grown.api`.

A combination is a program of one call, judged as grown programs are.  NumPy says which combinations there are.
Each function has a process of its own.  What is compiled are programs of several calls that are right as Python,
since numba takes about as long for one of these as for one call.
"""

from __future__ import annotations

import argparse
import collections
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.grown.api_calls import Caller, InactivePlaces
from tests.grown.api_targets import targets
from tests.grown.calls_apart import Given, judged
from tests.grown.checks import FINE, INVALID, RIGHT, Verdict
from tests.grown.program import SEPARATION

STAGES = ("primal", "reverse", "forward", "jacobian", "second")
JOINED = 6


def joined(texts: Sequence[str]) -> str:
    """One program that makes the calls of several; its result is a tuple of theirs."""
    head = texts[0][: texts[0].index("def f(")]
    parameters, body, results, given = [], [], [], []
    for k, text in enumerate(texts):
        function, _, arguments = text[text.index("def f(") :].partition(SEPARATION)
        function = re.sub(r"\b(a\d+|o|r|rng)\b(?!')", rf"\1_{k}", function)
        first, *lines, last = function.rstrip().split("\n")
        parameters.append(first[len("def f(") : -len("):")])
        body += lines
        results.append(last.partition("return ")[2])
        given.append(arguments.partition("return (")[2].rstrip().removesuffix(",)"))
    lines = [f"def f({', '.join(parameters)}):", *body, f"    return ({', '.join(results)},)"]
    return head + "\n".join(lines) + f"{SEPARATION}\n    return ({', '.join(given)},)\n"


def compiled(right: Sequence[str], stage: str) -> Iterator[tuple[str, Verdict]]:
    """Programs that are right as Python, as machine code: several in one, and each alone where these are not right.

    With the stage `loops`, CPython runs the text that is made for numba.
    """
    stages = ("reverse", stage)
    groups = {joined(part): part for k in range(0, len(right), JOINED) if (part := right[k : k + JOINED])}
    for text, verdict in judged(Given([*groups]), stages, len(groups)):
        alone = [] if verdict.kind == RIGHT else list(judged(Given(groups[text]), stages, len(groups[text])))
        if all(each.kind == RIGHT for _, each in alone) and verdict.kind != RIGHT:
            alone = [(text, verdict)]
        yield from alone or [(each, verdict) for each in groups[text]]


class Findings:
    """What became of programs.

    Attributes
    ----------
    count : Counter
        How many there are of each kind.
    groups : dict
        Those that are not right, by kind, name, stage and cause.
    """

    def __init__(self) -> None:
        self.count = collections.Counter[str]()
        self.groups: dict[tuple[str, str, str, str], list[tuple[Verdict, str]]] = {}

    def add(self, name: str, text: str, verdict: Verdict, place: str) -> None:
        """One more program."""
        self.count[verdict.kind] += 1
        if verdict.kind != RIGHT:
            self.groups.setdefault((verdict.kind, name, verdict.stage, place), []).append((verdict, text))
        if verdict.kind not in FINE:
            print(f"{verdict.kind} {name} in {verdict.stage}: {verdict.detail[:200]}", flush=True)

    def lines(self) -> Iterator[str]:
        """The report."""
        for (kind, name, stage, _), group in sorted(self.groups.items(), key=lambda item: item[0]):
            verdict, text = min(group, key=lambda pair: len(pair[1]))
            yield f"\n## {kind} {name} in {stage} ({len(group)}): {verdict.detail[:300]}"
            if kind != "refused":
                yield text[text.index("def f") :]


def main(given: list[str] | None = None) -> int:
    """Run the command; 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.grown.api", description=__doc__)
    parser.add_argument("--combinations", type=int, default=20, help="for each function")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="functions whose name holds this text")
    parser.add_argument("--part", default="0/1", help="K/N: every N-th function, from the K-th")
    parser.add_argument("--compiled", type=int, default=0, help="so many combinations for each function also compiled")
    parser.add_argument("--loops", action="store_true", help="CPython runs these, a tenth of the time")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--report", type=Path)
    wanted = parser.parse_args(given)
    began, python, machine = time.monotonic(), Findings(), Findings()
    first, _, step = wanted.part.partition("/")
    made: list[Caller | InactivePlaces] = [
        Caller(target, wanted.seed) for target in targets(wanted.only)[int(first) :: int(step)]
    ]
    made += [] if wanted.only or first != "0" else [InactivePlaces(wanted.seed)]
    for number, each in enumerate(made):
        if time.monotonic() - began > 60 * wanted.minutes:
            print(f"out of time before {each.name}, function {number} of {len(made)}")
            break
        right = []
        for text, verdict in judged(each, STAGES, wanted.combinations):
            python.add(each.name, text, verdict, text if isinstance(each, InactivePlaces) else verdict.key())
            if verdict.kind == RIGHT:
                right.append(text)
        for text, verdict in compiled(right[: wanted.compiled], "loops" if wanted.loops else "compiled"):
            machine.add(each.name, text, verdict, verdict.key())
    seconds = time.monotonic() - began
    lines = [f"{findings.count.total()} programs: {dict(findings.count)}" for findings in (python, machine)]
    shown = "\n".join([f"{seconds:.0f} s", *lines, *python.lines(), *machine.lines()])
    print(shown)
    if wanted.report:
        wanted.report.write_text(shown, encoding="utf-8")
    count = python.count + machine.count
    return int(any(count[kind] for kind in count if kind not in (*FINE, INVALID)))


if __name__ == "__main__":
    sys.exit(main())
