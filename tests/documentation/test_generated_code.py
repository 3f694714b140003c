"""The generated code that pages show is what is generated."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.documentation.pages import DOCS, without_compiling

CALLS: dict[str, dict[str, tuple[Any, ...]]] = {
    "index.md": {"decay": (np.array([3.0, 1.0, 2.0]), 0.2)},
    "how_it_works.md": {"wave": (2.0, 0.5), "march": (2.0, 3)},
}


@pytest.mark.parametrize("page", CALLS)
def test_generated_code_is_what_is_shown(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiling(monkeypatch)
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    shown = [block for block in blocks if "Cotangents of the inputs" in block]
    path = tmp_path / f"shown_{page.removesuffix('.md')}.py"
    path.write_text("\n".join(block for block in blocks if block not in shown), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    generated: list[str] = []
    for name, arguments in CALLS[page].items():
        code = getattr(module, name).inspect(*arguments)
        generated += [part.partition("def ")[2].strip() for part in (code.forward, code.backward)]
    for block in shown:
        for function in block.split("def ")[1:]:
            assert function.strip() in generated
