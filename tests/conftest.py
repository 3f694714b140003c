"""What tests of several files share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tapegen as tg
from tapegen.rules import registry
from tapegen.runtime import closure_sharing
from tests import nests_reader
from tests.documentation.pages import is_of_the_package

tg.config.tracebacks = "full"  # a test that fails shows where


@pytest.fixture(params=["python", pytest.param("numba", marks=pytest.mark.compiled)])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops run in CPython, and compiled."""
    if request.param == "python":
        monkeypatch.setattr(nests_reader, "compiled", nests_reader.uncompiled)


@pytest.fixture(autouse=True)
def rules_of_a_test_end() -> Iterator[None]:
    """Rules that a test registers end with it: programs are not stored on disk while there are any."""
    before = set(registry._RULES)
    yield
    for func in [func for func in registry._RULES if func not in before]:
        if not is_of_the_package(registry._RULES[func]):
            del registry._RULES[func]


@pytest.fixture(autouse=True)
def no_program_of_another_test() -> None:
    """What a test compiles does not depend on the tests before it."""
    closure_sharing._KNOWN.clear()
