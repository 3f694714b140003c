"""The attacks of `tests/attack` on a few rounds, and on what is planted for them to find."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tapegen.backend.cache import store
from tapegen.export.native import c_wrappers
from tapegen.rules import registry
from tests.attack import libraries
from tests.attack.cache import Attack, Home, write_source
from tests.attack.damage import ENTRIES, UNSAFE
from tests.attack.library_cases import LIBRARIES, Case, Library, narrow
from tests.attack.workers import Job, Worker
from tests.documentation.pages import is_of_the_package

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def without_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only workers store; they are forked from this process, and rules of users would keep them from it."""
    monkeypatch.setenv(store.SWITCH, "0")
    registry.load_awaited()
    own = {func: rule for func, rule in registry._RULES.items() if is_of_the_package(rule)}
    monkeypatch.setattr(registry, "_RULES", own)


def test_processes_with_one_cache(tmp_path: Path) -> None:
    attack = Attack(3, tmp_path, compiled=0.0)
    attack.run(6)
    assert attack.failures == []
    assert min(attack.counts[name] for name in ("killed", "entries saved", "results compared")) > 0
    assert attack.damages.total() > 0


def without_checksums() -> None:
    store._head = lambda key, payload: store._MAGIC + bytes(64)


def without_looking_at_directories() -> None:
    store.Store._check_folder = lambda self: store.os.lstat(self.folder)  # type: ignore[method-assign]


@pytest.mark.parametrize("plant", [without_checksums, without_looking_at_directories])
def test_planted_defects_of_the_cache_are_found(plant: Callable[[], object], tmp_path: Path) -> None:
    attack = Attack(0, tmp_path, 0.0, plant)
    home = Home(attack, random.Random(0), 0)
    write_source(home.file, 3)
    job = Job(
        home.file, (("polynomial", "number", "plain"),), environment={store.SWITCH: "1", store.FOLDER: str(home.folder)}
    )

    def run(*, unsafe: bool = False) -> None:
        home.history.append("")
        worker = Worker(job, attack.plant)
        worker.start()
        told = worker.end(60.0)
        home.saved |= {tuple(each) for each in told["saved"]}
        home.check(told, job, first=False, changing=False, unsafe=unsafe)

    run()
    run()
    assert attack.failures == [] and attack.counts["entries loaded"] > 0
    if plant is without_checksums:
        for path in home.folder.iterdir():
            ENTRIES["filled with zeros"](path, home.rng)
            path.write_bytes(store._MAGIC + path.read_bytes()[len(store._MAGIC) :])
        run()
        assert "what nobody saved was loaded" in attack.failures[0]
    else:
        UNSAFE["parent writable for all"](home.folder, home.rng)
        run(unsafe=True)
        assert "entries were loaded from a directory that others can write" in attack.failures[0]


@pytest.mark.compiled
@pytest.mark.skipif(shutil.which("valgrind") is None or shutil.which("cc") is None, reason="needs valgrind and cc")
def test_a_library_that_is_called_wrongly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library((Case(narrow, LIBRARIES["single"].cases[0].args, ("x", "factor"), ("grad",)),))
    count, found = libraries.attack("single", library, tmp_path / "right")
    assert count > 50 and found == []
    monkeypatch.setattr(c_wrappers, "_shared", lambda entry, early: iter(()))
    assert any("x_bar is factor_bar" in line for line in libraries.attack("single", library, tmp_path / "wrong")[1])
