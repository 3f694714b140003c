"""Tensors print as those of the module that a test file imports."""

from __future__ import annotations

import pytest

from tapegen.tape.tensor import Traced


@pytest.fixture(autouse=True)
def _printed_as(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Traced, "printed_as", "tf" if hasattr(request.module, "tf") else "tg")
