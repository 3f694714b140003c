"""Two processes with one directory of the cache, one of them killed, while files in it are damaged.

    python -m tests.attack.cache --rounds 2000

Each round changes the source (with equal size and time of writing), damages entries or directories, and lets two
processes differentiate functions; one of them is killed at a random moment or before a random call of the system.
Each number must be what it is without a cache, bit for bit; what a process loads must have been saved under that key;
a process raises nothing and warns at most once, and not at all where nothing is damaged; a directory that others can
write is neither read nor written; what killed processes leave stays within the limit, and is deleted later.

Rounds come in homes, directories that start empty: the same seed makes the same rounds (the moments of kills vary).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tapegen.backend.cache.store import FOLDER, LIMIT, SWITCH, Store, key_of
from tests.attack.damage import ENTRIES, UNSAFE, mend, remove_replaced
from tests.attack.workers import OPTIONS, SOURCE, TAKES, WRITTEN, Item, Job, Worker, warm_up

HOME = 20  # rounds
SECONDS = 120.0  # after which a process hangs
SCALES = (2, 3, 5)


class Attack:
    """Rounds with what they have found.

    Parameters
    ----------
    seed : int
    base : Path
        A directory that others cannot write.
    compiled : float
        The share of homes whose functions are compiled.
    plant : callable
        Called in each process: what is to be found, when the attack itself is tested.
    """

    def __init__(self, seed: int, base: Path, compiled: float, plant: Callable[[], object] = lambda: None) -> None:
        self.seed, self.base, self.share, self.plant = seed, base, compiled, plant
        self.counts: Counter[str] = Counter()
        self.damages: Counter[str] = Counter()
        self.failures: list[str] = []
        self.references: dict[tuple[Any, ...], list[str]] = {}
        self.most_unfinished = 0
        self.typical = {False: 0.1, True: 0.3}  # seconds that a process takes, of Python and compiled

    def run(self, rounds: int) -> None:
        """Run rounds in processes that are forked with all that tapegen and numba import when they first work."""
        write_source(self.base / "warm.py", max(SCALES) + 1)
        warm_up(self.base / "warm.py", compiled=self.share > 0)
        for number, first in enumerate(range(0, rounds, HOME)):
            home = Home(self, random.Random(f"{self.seed} {number}"), number)
            for _ in range(min(HOME, rounds - first)):
                home.round()
            home.end()

    def reference(self, compiled: bool, scale: float, item: Item) -> list[str]:
        """The outcome without a cache."""
        key = (compiled, scale, *item)
        if key not in self.references:
            file = self.base / "reference.py"
            write_source(file, scale)
            worker = Worker(Job(file, (item,), compiled, environment={SWITCH: "0"}), lambda: None)
            worker.start()
            told = worker.end(SECONDS)
            if told["status"] != [0] or told["broken"]:
                raise RuntimeError(f"no reference for {key}: {told}")
            ((_, self.references[key]),) = told["found"]
        return self.references[key]


def write_source(file: Path, scale: float) -> None:
    """Put another source in the place of one, at once: a process reads the one or the other."""
    other = file.with_suffix(".new")
    other.write_text(SOURCE % scale, encoding="utf-8")
    os.utime(other, (WRITTEN, WRITTEN))
    other.rename(file)


class Home:
    """Rounds with one directory."""

    def __init__(self, attack: Attack, rng: random.Random, number: int) -> None:
        self.attack, self.rng, self.number = attack, rng, number
        self.root = attack.base / f"home{number}"
        self.folder = self.root / "cache" / "tapegen"
        self.folder.parent.mkdir(parents=True, mode=0o700)
        self.file = self.root / "kernel.py"
        self.compiled = rng.random() < attack.share
        self.harmed = False
        self.careful = rng.random() < 0.2  # kills only: nobody may warn
        self.saved: set[tuple[str, str]] = set()
        self.killed = 0
        names = [name for name in TAKES for _ in TAKES[name]]
        self.pool = [self._item(rng.choice(names)) for _ in range(3)]
        self.history: list[str] = []

    def _item(self, name: str) -> Item:
        return name, self.rng.choice(TAKES[name]), self.rng.choice(["plain", "plain", *OPTIONS])

    def fail(self, what: str) -> None:
        """Note what must not happen, and how it came about."""
        kind = "compiled" if self.compiled else "text"
        self.attack.failures.append("\n  ".join([f"home {self.number}: {what}", kind, *self.history]))

    def round(self) -> None:
        rng, counts = self.rng, self.attack.counts
        counts["rounds"] += 1
        self.history.append(f"round {len(self.history)}:")
        write_source(self.file, rng.choice(SCALES))
        if rng.random() < 0.4:
            remove_replaced(self.folder)
        for _ in range(rng.choice([0, 1, 1, 3])):
            self.damage()
        unsafe = not self.careful and rng.random() < 0.1 and self.folder.is_dir() and self._make_unsafe()
        before = set(os.listdir(self.folder)) if unsafe else set()
        jobs = [self._job(dies_at=rng.randrange(1, 20) if rng.random() < 0.5 else 0), self._job()]
        workers = [Worker(job, self.attack.plant) for job in jobs]
        start = time.monotonic()
        for worker in workers:
            worker.start()
        changing = rng.random() < 0.1
        self._meanwhile(start, workers, jobs, changing, quiet=unsafe)
        found = [worker.end(SECONDS) for worker in reversed(workers)][::-1]
        typical = self.attack.typical
        typical[self.compiled] += 0.1 * (time.monotonic() - start - typical[self.compiled])
        self.saved |= {tuple(each) for told in found for each in told["saved"]}
        for k, (told, job) in enumerate(zip(found, jobs, strict=True)):
            self.check(told, job, first=k == 0, changing=changing, unsafe=unsafe)
        if unsafe:
            if set(os.listdir(self.folder)) != before:
                self.fail("a directory that others can write was written")
            mend(self.folder)
        self._look_at_what_is_left()

    def damage(self) -> None:
        """Damage an entry, if there is one and this home has any."""
        entries = sorted(path for path in self.folder.glob("[!.]*")) if self.folder.is_dir() else []
        if not entries or self.careful:
            return
        name = self.rng.choice(list(ENTRIES))
        with contextlib.suppress(OSError):  # a process has deleted it at this moment
            ENTRIES[name](self.rng.choice(entries), self.rng)
            self.attack.damages[name] += 1
            self.history[-1] += f" {name},"
            self.harmed = True

    def _make_unsafe(self) -> bool:
        name = self.rng.choice(list(UNSAFE))
        UNSAFE[name](self.folder, self.rng)
        self.attack.damages[name] += 1
        self.history[-1] += f" {name},"
        return True

    def _job(self, dies_at: int = 0) -> Job:
        rng = self.rng
        items = [rng.choice(self.pool) if rng.random() < 0.8 else self._item(rng.choice(list(TAKES)))]
        items += [rng.choice(self.pool)] * rng.choice([0, 0, 1])
        environment = {SWITCH: "1", FOLDER: str(self.folder)}
        if rng.random() < 0.1:
            environment[LIMIT] = "0"  # all but the newest are too many
        full = not self.careful and rng.random() < 0.05
        largest = rng.randrange(1, 20_000 if self.compiled else 3000) if full else 0
        bytecode, strict = rng.random() < 0.1, rng.random() < 0.05
        return Job(self.file, tuple(items), self.compiled, bytecode, dies_at, largest, strict, environment)

    def _meanwhile(self, start: float, workers: list[Worker], jobs: list[Job], changing: bool, *, quiet: bool) -> None:
        """Kill the first process, and damage and change files, at random moments."""
        rng, longest = self.rng, 1.5 * self.attack.typical[self.compiled]
        actions: list[tuple[float, Callable[[], object]]] = []
        if not jobs[0].dies_at:
            actions.append((rng.uniform(0, longest), workers[0].kill))
        if changing:
            actions.append((rng.uniform(0, longest / 2), lambda: write_source(self.file, rng.choice(SCALES))))
        if not quiet and rng.random() < 0.3:
            actions.append((rng.uniform(0, longest), self.damage))
        for at, act in sorted(actions, key=lambda action: action[0]):
            while time.monotonic() < start + at and not all(worker.ended() for worker in workers):
                time.sleep(0.002)
            act()

    def check(self, told: dict[str, list[Any]], job: Job, *, first: bool, changing: bool, unsafe: bool) -> None:
        """Whether what a process has told is as it must be."""
        counts, (status,) = self.attack.counts, told["status"]
        counts["entries saved"] += len(told["saved"])
        counts["entries loaded"] += len(told["loaded"])
        counts["compiled: entries loaded"] += len(told["loaded"]) if job.compiled else 0
        if status == -9 and first:
            self.killed += 1
            counts["killed"] += 1
            counts["killed before a call of the system"] += job.dies_at > 0
        elif status is None:
            self.fail(f"a process hangs: {job}")
        elif status != 0 or told["broken"]:
            self.fail(f"a process ended with {status}: {told['broken']} {job}")
        for key, contents in told["loaded"]:
            if (key, contents) not in self.saved:
                self.fail(f"what nobody saved was loaded as {key}: {job}")
        if unsafe and told["loaded"]:
            self.fail(f"entries were loaded from a directory that others can write: {job}")
        said = told["said"] + [[True, outcome[1]] for _, outcome in told["found"] if outcome[0] == "CacheWarning"]
        answered = [outcome for _, outcome in told["found"] if outcome[0] != "SourceUnavailable"]
        for (scale, outcome), item in zip(told["found"], job.items, strict=False):
            counts["results compared"] += 1
            if outcome[0] == "SourceUnavailable" and (changing or job.bytecode):
                counts["refused, as the source is not that of the code"] += 1
            elif outcome[0] == "CacheWarning" and job.strict:
                counts["warnings that were errors"] += 1
            elif outcome != (wanted := self.attack.reference(self.compiled, scale, item)):
                self.fail(f"{item} at {scale}: {outcome} in the place of {wanted}")
        counts["warnings"] += len(said)
        if len(said) > 1 or not all(is_ours for is_ours, _ in said):
            self.fail(f"warnings: {told['said']}")
        if said and not (self.harmed or unsafe or job.largest):
            self.fail(f"a warning without damage: {told['said']}")
        if unsafe and status == 0 and answered and not said:
            self.fail(f"no warning about a directory that others can write: {told} {job}")

    def _look_at_what_is_left(self) -> None:
        """Nothing but entries, and at most one unfinished file of each killed process."""
        unfinished = list(self.folder.glob(".*")) if self.folder.is_dir() else []
        self.attack.most_unfinished = max(self.attack.most_unfinished, len(unfinished))
        if len(unfinished) > self.killed:
            self.fail(f"{len(unfinished)} unfinished files of {self.killed} killed processes")

    def end(self) -> None:
        """A later process deletes what was left, and makes room where there is none."""
        remove_replaced(self.folder)
        if not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            os.chown(path, os.geteuid(), -1)
        limit = 20_000
        Store(self.folder, limit).save(key_of("the last"), b"x" * 1000)
        total = sum(path.stat().st_size for path in self.folder.iterdir())
        if total > limit:
            self.fail(f"{total} bytes are left within a limit of {limit}")
        for path in self.folder.glob(".*"):
            os.utime(path, (0, 0))
        Store(self.folder, limit).save(key_of("the very last"), b"")
        if list(self.folder.glob(".*")):
            self.fail("an unfinished file is never deleted")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack.cache", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", type=float, default=0.15, help="the share of rounds that compile")
    given = parser.parse_args()
    os.environ[SWITCH] = "0"
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="attack") as folder:
        attack = Attack(given.seed, Path(folder), given.compiled)
        attack.run(given.rounds)
    for name, count in [*sorted(attack.counts.items()), *sorted(attack.damages.items())]:
        print(f"{count:7}  {name}")
    print(f"{attack.most_unfinished:7}  unfinished files at most")
    print(f"{time.monotonic() - start:7.0f}  seconds")
    print(f"{len(attack.failures):7}  failures", *attack.failures, sep="\n")
    return 1 if attack.failures else 0


if __name__ == "__main__":
    sys.exit(main())
