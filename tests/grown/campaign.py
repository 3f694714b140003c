"""Many programs in several processes, and a report of what was found."""

from __future__ import annotations

import collections
import dataclasses
import json
import queue
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from tests.grown.checks import FINE, INVALID, RIGHT, ROOT, SECONDS, TIMEOUT, WRONG, Verdict, judge
from tests.grown.grow import grown
from tests.grown.shrink import shrunk

RENEW = 150  # programs after which a process is replaced, so that memory stays bounded
DEAD = "CRASH"


@dataclasses.dataclass
class Found:
    """What became of one seed."""

    seed: int
    verdict: Verdict
    text: str = ""


def one(seed: int, stages: Sequence[str], shrink: float) -> Found:
    """Grow, judge, and shrink what fails."""
    program = grown(seed)
    verdict = judge(program.text(), stages)
    if verdict.kind in FINE:
        return Found(seed, verdict)
    if shrink and verdict.kind != TIMEOUT:
        program = shrunk(program, lambda text: judge(text, stages, 10).same(verdict), shrink)
    return Found(seed, verdict, program.text())


def serve(first: int, last: int, stages: Sequence[str], shrink: float) -> None:
    """What a process of a campaign does: a line when it begins a seed, and one with what it found."""
    for seed in range(first, last):
        print(json.dumps({"seed": seed}), flush=True)
        found = one(seed, stages, shrink)
        print(json.dumps(dataclasses.asdict(found)), flush=True)


class Campaign:
    """Runs seeds in `jobs` processes.

    Parameters
    ----------
    stages : sequence of str
        Oracles, see `checks.STAGES`.
    jobs : int
        Processes.
    shrink : float
        Seconds for each finding to be made smaller.
    """

    def __init__(self, stages: Sequence[str], jobs: int = 1, shrink: float = 30.0) -> None:
        self.stages = tuple(stages)
        self.jobs = jobs
        self.shrink = shrink
        self.results: queue.Queue[Found | None] = queue.Queue()
        self.waiting: Iterator[tuple[int, int]] = iter(())
        self.lock = threading.Lock()
        self.stop = float("inf")

    def run(self, first: int, count: int, seconds: float = float("inf")) -> Iterator[Found]:
        """What becomes of each seed, in no order, until time is up."""
        self.stop = time.monotonic() + seconds
        step = max(1, min(RENEW, count // self.jobs))
        self.waiting = ((start, min(start + step, first + count)) for start in range(first, first + count, step))
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(self.jobs)]
        for thread in threads:
            thread.start()
        ended = 0
        while ended < self.jobs:
            found = self.results.get()
            if found is None:
                ended += 1
            else:
                yield found

    def _work(self) -> None:
        try:
            while time.monotonic() < self.stop:
                with self.lock:
                    first, last = next(self.waiting, (0, 0))
                if first == last:
                    return
                while first < last and time.monotonic() < self.stop:
                    first = self._part(first, last)
        finally:
            self.results.put(None)

    def _part(self, first: int, last: int) -> int:
        """Seeds in one process until it ends; the next seed."""
        command = [sys.executable, "-m", "tests.grown", "--serve", f"{first}:{last}", "--stages", ",".join(self.stages)]
        command += ["--shrink", str(self.shrink)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT)
        assert process.stdout is not None
        at = first
        patience = SECONDS * len(self.stages) + 2 * self.shrink + 30
        try:
            while time.monotonic() < self.stop:
                ready, _, _ = select.select([process.stdout], [], [], patience)
                line = process.stdout.readline() if ready else b""
                if not line:
                    if at < last:
                        kind = DEAD if ready else TIMEOUT
                        self.results.put(Found(at, Verdict(kind, "process")))  # growing may be what ends it
                    return at + 1
                said: dict[str, Any] = json.loads(line)
                at = said["seed"]
                if "verdict" in said:
                    self.results.put(Found(at, Verdict(**said["verdict"]), said["text"]))
                    at += 1
                    if at == last:
                        return at
            return last
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def report(results: Sequence[Found], seconds: float) -> str:
    """Programs, verdicts, findings per 10,000, and each finding with its seeds and the smallest program."""
    count = max(1, len(results))
    kinds = collections.Counter(found.verdict.kind for found in results)
    bad = [found for found in results if found.verdict.kind not in (*FINE, INVALID)]
    judged = max(1, kinds[RIGHT] + kinds[WRONG])
    lines = [f"{len(results)} programs in {seconds:.0f} s"]
    for kind, number in kinds.most_common():
        lines.append(f"{number:7d}  {kind:9s} {number / count * 1e4:8.1f} per 10,000")
    lines.append(f"wrong per 10,000 differentiated: {kinds[WRONG] / judged * 1e4:.1f}")
    groups: dict[tuple[str, str, str], list[Found]] = {}
    for found in bad:
        groups.setdefault((found.verdict.kind, found.verdict.stage, found.verdict.key()), []).append(found)
    for (kind, stage, key), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        smallest = min(group, key=lambda found: len(found.text))
        lines += ["", f"## {kind} in {stage}: {key}"]
        lines.append(f"seeds {', '.join(str(found.seed) for found in group)}; the smallest, of {smallest.seed}:")
        lines += [smallest.verdict.detail, "", smallest.text]
    reasons = collections.Counter(found.verdict.key() for found in results if found.verdict.kind == "refused")
    if reasons:
        lines += ["", "## refused"]
        lines += [f"{number:7d}  {reason}" for reason, number in reasons.most_common(40)]
    return "\n".join(lines)
