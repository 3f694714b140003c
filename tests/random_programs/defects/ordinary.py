"""Which test of the ordinary suite finds each planted defect.

For every defect are tried in turn: the program that is kept for it, the test that found it the last time, the tests
where it says that it is likely to be found, and the random programs that the suite draws.  Tests run up to the first
that fails, in a process of its own for each defect, which plants it when the tests have been collected; what fails must
pass without a defect.  The results stand in `found.txt`.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import itertools
import os
import pathlib
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.random_programs.adapter import Derivation
from tests.random_programs.campaign import judged
from tests.random_programs.corpus import load
from tests.random_programs.defects.hunt import FOLDER, finds, path_of, traced
from tests.random_programs.defects.switch import Defect
from tests.random_programs.generator import generate, profiles

ROOT = pathlib.Path(__file__).parent.parent.parent.parent
TABLE = pathlib.Path(__file__).parent / "found.txt"
SECONDS = 120
"""A test that takes longer with a defect has found it: without one none takes as long."""
Tell = Callable[[str], None]
Report = Callable[[Defect, str], None]
_KEPT = "tests/fuzzing/test_defects.py::test_a_kept_program_finds_the_defect_and_passes_without"
_RANDOM = "tests/fuzzing/test_random_programs.py::test_gradients_agree_with_the_oracles"
PROGRAMS, PARTS = 3000, 3
"""Of the ordinary suite, see `tests/fuzzing/test_random_programs.py`."""
_NOTHING, _NOTHING_FOUND = "nothing runs", "NOT FOUND"
_OPTIONS = (
    "-q",
    "--rootdir",
    str(ROOT),
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-m",
    "not compiled and not whole",
)


def table() -> dict[str, str]:
    """The tests that find the defects, by the names of these; nothing where none was found.

    Defects that have not been looked for to the end are left out.
    """
    if not TABLE.exists():
        return {}
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    parts = (line.partition(" | ") for line in lines if line[:1] not in ("", "#"))
    return {name: "" if test == _NOTHING_FOUND else test for name, _, test in parts}


def write(found: dict[str, str], defects: Sequence[Defect]) -> None:
    """Keep the results, in the order of the defects."""
    lines = [f"{defect.name} | {found[defect.name] or _NOTHING_FOUND}" for defect in defects if defect.name in found]
    head = "# Which test of the ordinary suite finds each defect: python -m tests.random_programs.defects --tests\n"
    TABLE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


def is_there(test: str) -> bool:
    """Whether a test that the table names is defined (of its cases, those are looked at that are kept programs)."""
    path, _, name = test.partition("::")
    if test.startswith(_KEPT):
        return (FOLDER / f"{test.removeprefix(_KEPT)[1:-1]}.py").exists()
    return (ROOT / path).exists() and (not name or name.partition("[")[0] in _tests_of(ROOT / path))


@functools.cache
def _tests_of(path: pathlib.Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [(node.name, "", node) for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    inner = (
        f"{name}::{each.name}" for name, _, node in found for each in node.body if isinstance(each, ast.FunctionDef)
    )
    return frozenset([*(name for name, _, _ in found), *inner])


def by_kept_programs(defects: Sequence[Defect], report: Report) -> list[Defect]:
    """Defects that the programs which are kept for them find are reported; gives the others."""
    left = []
    for defect in defects:
        path = path_of(defect)
        work = functools.partial(_replay, defect, path)
        if path.exists() and "found" in _told_by(work, SECONDS):
            report(defect, f"{_KEPT}[{path.stem}]")
        else:
            left.append(defect)
    return left


def _replay(defect: Defect, path: pathlib.Path, tell: Tell) -> None:
    if finds(defect, load(path)):
        tell("found")


def by_tests(defects: Sequence[Defect], tests: Mapping[str, Sequence[str]], report: Report) -> list[Defect]:
    """Run tests, the first ones of every defect first; those that find one are reported.  Gives the other defects."""
    left = list(defects)
    for each in dict.fromkeys(test for defect in defects for test in tests[defect.name]):
        chosen = [defect for defect in left if each in tests[defect.name]]
        if not chosen:
            continue
        last = ""
        for line in _told_by(functools.partial(_run_with_each, chosen, each), None):
            number, _, last = line.partition(" ")
            if number and last:
                report(chosen[int(number)], last)
                left.remove(chosen[int(number)])
        if last == _NOTHING:
            raise ValueError(f"pytest finds no test in {each}")
    return left


def likely_tests(defects: Sequence[Defect]) -> dict[str, Sequence[str]]:
    """Where defects are likely to be found."""
    return {defect.name: defect.tests.split() for defect in defects}


def failing(tests: Iterable[str]) -> set[str]:
    """The tests that fail without any defect."""
    nodes = [test for test in dict.fromkeys(tests) if not test.startswith(_KEPT)]
    watching = _Watching(lambda text: None)
    if nodes:
        pytest.main([*_OPTIONS, *(str(ROOT / node) for node in nodes)], plugins=[watching])
    return watching.failed


def _run_with_each(defects: Sequence[Defect], tests: str, tell: Tell) -> None:
    """Collect tests once; for each defect, run them in a process of its own up to the first that fails."""
    code = pytest.main([*_OPTIONS, str(ROOT / tests)], plugins=[_Planting(defects, tell)])
    if code in (pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.USAGE_ERROR):
        tell(f" {_NOTHING}")


class _Watching:
    """Keeps what fails."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
            self.tell(f"failed {report.nodeid}")


class _Planting:
    """In the place of the loop over tests: one for each defect."""

    def __init__(self, defects: Sequence[Defect], tell: Tell) -> None:
        self.defects, self.tell = defects, tell

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for k, defect in enumerate(self.defects):
            *_, last = "", *_told_by(functools.partial(self._run, session, defect), SECONDS)
            # where a test does not come back, its name is the last word
            self.tell(f"{k} {last.removeprefix('failed ').removesuffix('all pass')}")
        return True

    def _run(self, session: pytest.Session, defect: Defect, tell: Tell) -> None:
        watching = _Watching(tell)
        session.config.pluginmanager.register(watching)
        items = session.items
        with defect.plant():
            for item, following in zip(items, [*items[1:], None], strict=True):
                tell(item.nodeid)
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if watching.failed:
                    return
        tell("all pass")


def by_random_programs(defects: Sequence[Defect], report: Report, minutes: float = 1e9) -> list[Defect]:
    """Look for all defects at once among the random programs of the ordinary suite; gives those that none finds."""
    left = list(defects)
    watched = {defect.code for defect in defects if defect.code is not None}
    names = profiles()
    count = -(-PROGRAMS // (len(names) * PARTS))
    end = time.monotonic() + 60 * minutes
    for k, part, name in itertools.product(range(count), range(PARTS), names):
        if not left or time.monotonic() > end:
            break
        program = generate(part * 10_000 + k, name)
        chosen = [defect for defect in left if re.search(defect.needs, program.source)]
        try:
            derivation = Derivation(program)
            right, reach = traced(derivation, watched)
        except Exception:  # refused
            continue
        for defect in chosen:
            if defect.in_text and not defect.reached(reach):
                continue
            with defect.plant():
                if defect.in_text and _text(derivation) == right:
                    continue
                fails = bool(judged(program, "python").failures)
            if fails:
                left.remove(defect)
                report(defect, f"{_RANDOM}[{name}-{part}]")
    return left


def _text(derivation: Derivation) -> str:
    try:
        return derivation.text()
    except Exception:
        return ""


_END = b"\0"


def _told_by(work: Callable[[Tell], Any], seconds: float | None) -> Iterator[str]:
    """What a process of its own tells; it is ended where it says nothing for so long."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        os.setsid()
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        sys.stdout = sys.stderr = io.StringIO()
        with contextlib.suppress(BaseException):
            work(lambda text: os.write(into, text.encode() + b"\n") and None)
        os.write(into, _END)
        os._exit(0)
    os.close(into)
    told = b""
    try:
        while not told.endswith(_END) and select.select([out], [], [], seconds)[0]:
            piece = os.read(out, 65536)
            if not piece:
                break
            *lines, told = (told + piece).split(b"\n")
            yield from (line.decode() for line in lines)
    finally:
        os.close(out)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # with what it has started
        os.waitpid(child, 0)
