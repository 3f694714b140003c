"""The programs of the suite, and random ones, with each of their loops checkpointed."""

from __future__ import annotations

import pytest

import tapegen
from tests import program_files
from tests.checkpointed import Found, compare
from tests.random_programs.generator import generate, profiles

PARTS = 8
PROGRAMS = program_files.collect()


def judge(found: list[Found], loops: int) -> None:
    wrong = [text for each in found for text in each.wrong]
    assert not wrong, "\n".join(wrong)
    assert sum(each.checked for each in found) >= loops


def one(program: program_files.Program) -> Found:
    return compare(program.decorated("python"), program.args(), program.kwargs(), program.name)


@pytest.mark.filterwarnings("ignore")
def test_some_programs() -> None:
    judge([one(program) for program in PROGRAMS[::100]], 4)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_all_programs(part: int) -> None:
    judge([one(program) for program in PROGRAMS[part::PARTS]], 20)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("profile", profiles())
def test_random_programs(profile: str) -> None:
    found: list[Found] = []
    for seed in range(2):
        program = generate(seed, profile)
        derived = tapegen.differentiable(program.load(), wrt=program.wrt, backend="python")
        found.append(compare(derived, program.arguments(), {}, f"{profile}:{seed}"))
    judge(found, 0)
