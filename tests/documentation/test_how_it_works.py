"""The generated code that docs/how_it_works.md shows is what is generated."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how_it_works.md"


def test_generated_code_is_what_is_shown(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    generated = [block for block in blocks if "_bar" in block]
    path = tmp_path / "how_it_works.py"
    path.write_text("\n".join(block for block in blocks if block not in generated), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("how_it_works", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    wave, march = module.wave.inspect(2.0, 0.5), module.march.inspect(2.0, 3)
    texts = [text.partition("def ")[2] for text in (wave.backward, march.forward, march.backward)]
    shown = [part for block in generated for part in block.split("def ")[1:]]
    assert [text.strip() for text in shown] == [text.strip() for text in texts]
