"""What tests of several files share."""

from __future__ import annotations

import pytest

import tapegen as tg
from tests import nests_reader

tg.config.tracebacks = "full"  # a test that fails shows where


@pytest.fixture(params=["python", pytest.param("numba", marks=pytest.mark.compiled)])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops run in CPython, and compiled."""
    if request.param == "python":
        monkeypatch.setattr(nests_reader, "compiled", nests_reader.uncompiled)
