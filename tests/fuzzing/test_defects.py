"""Defects that are planted in tapegen are found by random programs: those that are kept, one for a defect.

`python -m tests.random_programs.defects --programs 10000` hunts for all of them with fresh programs (hours), and with
`--tests` looks for ordinary tests that find them (`found.txt`).
"""

from __future__ import annotations

import pathlib

import pytest

from tapegen.transform.autodiff import adjoint_control_flow, reverse
from tests.random_programs.corpus import load
from tests.random_programs.defects import DEFECTS, Defect, Stale
from tests.random_programs.defects.hunt import finds, path_of, stored
from tests.random_programs.defects.ordinary import is_there, table


def test_every_defect_can_be_planted() -> None:
    """Where this fails, the text that a defect changes has moved: write the defect for the text that is there now."""
    stale = []
    for defect in DEFECTS:
        try:
            with defect.plant():
                pass
        except Stale as reason:
            stale.append(str(reason))
    assert stale == []
    assert len({path_of(defect) for defect in DEFECTS}) == len(DEFECTS) >= 200


def test_what_is_planted_is_taken_out_again() -> None:
    def methods() -> list[dict[str, object]]:
        return [dict(vars(cls)) for cls in (reverse.ReverseSweepBuilder, adjoint_control_flow.ControlFlowAdjoints)]

    before = methods()
    changed = 0
    for defect in DEFECTS:
        with defect.plant():
            changed += methods() != before
    assert changed > 10
    assert methods() == before


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("defect", "path"), [pytest.param(defect, path, id=path.stem) for defect, path in stored(DEFECTS)]
)
def test_a_kept_program_finds_the_defect_and_passes_without(defect: Defect, path: pathlib.Path) -> None:
    assert finds(defect, load(path))


def test_enough_programs_are_kept() -> None:
    assert len(list(stored(DEFECTS))) >= 12


def test_ordinary_tests_find_the_defects() -> None:
    """Which one finds which stands in a table; here only that these tests are still there."""
    looked_for, names = table(), {defect.name for defect in DEFECTS}
    assert looked_for.keys() <= names
    found = {name: test for name, test in looked_for.items() if test}
    assert [name for name, test in found.items() if not is_there(test)] == []
    assert len(found) >= 0.95 * len(looked_for) >= 200


def test_a_test_that_is_gone_is_seen() -> None:
    assert is_there("tests/fuzzing/test_defects.py::test_a_test_that_is_gone_is_seen[any case]")
    assert not is_there("tests/fuzzing/test_defects.py::test_that_never_was")
    assert not is_there("tests/test_no_such_file.py::test_a_test_that_is_gone_is_seen")
    assert not is_there(
        "tests/fuzzing/test_defects.py::test_a_kept_program_finds_the_defect_and_passes_without[no_such_program]"
    )
