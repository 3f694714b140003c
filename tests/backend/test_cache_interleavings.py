"""Two processes with one directory of the cache: every order of their calls of the system, and deaths in between.

Each process stops before every call of the system and waits for its turn, so an order is forced and not hoped for.
Never anything but what was saved, never an error, at most one warning of each process, none if nobody damages anything.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tapegen.backend.cache.store import Store, key_of

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

CALLS = ("mkdir", "open", "write", "close", "rename", "unlink", "scandir", "lstat", "stat", "fstat", "utime")
KEYS = [key_of(str(k)) for k in range(3)]
SMALL = 4000  # bytes: two entries are too many
CONTENTS = {key: key.encode() * 30 for key in KEYS}

Work = Callable[[Store], Any]


def saves(k: int) -> Work:
    """Save an entry, and read it again: it may be gone by then, not be another."""

    def work(store: Store) -> Any:
        store.save(KEYS[k], CONTENTS[KEYS[k]])
        return loads(k)(store)

    return work


def loads(k: int) -> Work:
    def work(store: Store) -> Any:
        found = store.load(KEYS[k])
        return "right" if found == CONTENTS[KEYS[k]] else found

    return work


def clears(store: Store) -> None:
    store.clear()


def lists(store: Store) -> None:
    store.entries()


def removes(store: Store) -> None:
    """The user deletes the whole directory."""
    shutil.rmtree(store.folder, ignore_errors=True)


class Process:
    """A process that waits before each of its calls of the system."""

    def __init__(self, work: Work, folder: Path, limit: int) -> None:
        asks, self.asked = os.pipe()
        self.asking, answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.asked)
            os.close(self.asking)
            self._run(work, Store(folder, limit), asks, answers)
        os.close(asks)
        os.close(answers)
        self.result: Any = None
        self.steps = 0
        self.alive = self._waits()

    def _run(self, work: Work, store: Store, asks: int, answers: int) -> None:
        read, write = os.read, os.write

        def waiting(call: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> Any:
                write(answers, b".")
                read(asks, 1)
                return call(*args, **kwargs)

            return run

        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                for name in CALLS:
                    setattr(os, name, waiting(getattr(os, name)))
                found = repr(work(store))
            write(answers, json.dumps([found, [str(each.message) for each in said]]).encode())
        except BaseException as error:
            write(answers, json.dumps([f"{type(error).__name__}: {error}", []]).encode())
        finally:
            os._exit(0)

    def _waits(self) -> bool:
        """Whether it stands before a call; else it has ended."""
        said = os.read(self.asking, 65536)
        if said == b".":
            return True
        self.result = json.loads(said)
        self.end()
        return False

    def step(self) -> bool:
        """One call; whether it stands before another."""
        if self.alive:
            os.write(self.asked, b".")
            self.steps += 1
            self.alive = self._waits()
        return self.alive

    def end(self) -> None:
        """Let it go, or kill it where it stands."""
        self.alive = False
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.asked)
        os.close(self.asking)
        os.waitpid(self.pid, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "tapegen"


def run(folder: Path, works: tuple[Work, Work], limit: int, order: Iterator[int]) -> list[int]:
    """Run two processes in an order: 0 and 1 for a step, 2 and 3 for the death of one; returns their steps."""
    shutil.rmtree(folder, ignore_errors=True)
    Store(folder, limit).save(KEYS[2], CONTENTS[KEYS[2]])
    processes = [Process(work, folder, limit) for work in works]
    taken = []
    for choice in order:
        taken.append(choice)
        if choice > 1 and processes[choice - 2].alive:
            processes[choice - 2].end()
        elif choice < 2:
            processes[choice].step()
    for process in processes:
        while process.step():
            pass
    for process in processes:
        if process.result is not None:
            assert process.result in [["'right'", []], ["None", []]], (taken, process.result)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for key in KEYS:
            assert Store(folder, limit).load(key) in (None, CONTENTS[key]), taken
        fresh = Store(folder, 2**20)
        fresh.save(KEYS[0], CONTENTS[KEYS[0]])
        assert fresh.load(KEYS[0]) == CONTENTS[KEYS[0]], taken
    for left in folder.iterdir():  # whole entries, or what a process that died had begun
        assert left.name in KEYS or (left.name.startswith(".") and max(taken, default=0) > 1), taken
    return [process.steps for process in processes]


WORKS: dict[str, tuple[Work, Work, int]] = {
    "one entry": (saves(0), saves(0), 2**20),
    "two entries": (saves(0), saves(1), 2**20),
    "two entries that are too many": (saves(0), saves(1), SMALL),
    "an entry that is replaced and read": (saves(2), loads(2), 2**20),
    "an entry that is pushed out and read": (saves(0), loads(2), SMALL),
    "an entry and the end of all": (saves(0), clears, 2**20),
    "two that clear": (clears, clears, 2**20),
    "reading while all is deleted": (loads(2), clears, 2**20),
    "saving while the directory is deleted": (saves(0), removes, 2**20),
    "reading while the directory is deleted": (loads(2), removes, 2**20),
    "listing while all is deleted": (lists, clears, 2**20),
}


def orders(steps: list[int], *, all_of_them: bool) -> Iterator[list[int]]:
    """A goes some steps, then B some, then A to its end; and the same with a death of either."""
    firsts, seconds = range(steps[0] + 1), range(1, steps[1] + 1)
    if all_of_them:
        for i, j, deaths in itertools.product(firsts, seconds, ([], [2], [3])):
            yield [*[0] * i, *[1] * j, *deaths]
        return
    for i in firsts:
        yield [0] * i + [1] * steps[1]
    for i, j in random.Random(0).sample(list(itertools.product(firsts, seconds)), min(8, steps[0])):
        yield [*[0] * i, *[1] * j, 2 + i % 2]


@pytest.mark.parametrize("name", WORKS)
def test_orders_of_two_processes(folder: Path, name: str) -> None:
    check(folder, name, all_of_them=False)


@pytest.mark.whole
@pytest.mark.parametrize("name", WORKS)
def test_all_orders_with_two_changes(folder: Path, name: str) -> None:
    check(folder, name, all_of_them=True)


def check(folder: Path, name: str, *, all_of_them: bool) -> None:
    first, second, limit = WORKS[name]
    steps = run(folder, (first, second), limit, iter([]))
    assert min(steps) > 0
    for order in orders(steps, all_of_them=all_of_them):
        run(folder, (first, second), limit, iter(order))
