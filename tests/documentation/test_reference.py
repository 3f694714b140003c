"""The reference names what is public."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
MODULES = ("tapegen", "tapegen.nn", "tapegen.aot")
NAMES = [
    f"{module}.{name}"
    for module in MODULES
    for name in importlib.import_module(module).__all__
    if not inspect.ismodule(getattr(importlib.import_module(module), name))
]


def test_every_public_name_is_there_once() -> None:
    assert sorted(re.findall(r"^::: ([\w.]+)$", PAGE, re.MULTILINE)) == sorted(NAMES)
