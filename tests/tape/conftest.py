"""Tensors look like those of the module that a test file imports."""

from __future__ import annotations

import pytest

from tapegen.tape.tensors.tensor import Traced
from tapegen.tf import TensorShape


@pytest.fixture(autouse=True)
def _looks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    is_tf = hasattr(request.module, "tf")
    monkeypatch.setattr(Traced, "printed_as", "tf" if is_tf else "tg")
    monkeypatch.setattr(Traced, "shape_type", TensorShape if is_tf else tuple)
