"""What the README shows is what happens."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.oracle import numerical_gradient

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, generated = blocks("python")[:2]
    path = tmp_path / "readme_example.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("readme_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert capsys.readouterr().out.strip() == generated.strip()
    estimate = numerical_gradient(module.march.python, (module.u0, 0.2, 10.0), paths=[(0,)])
    assert module.gradient == pytest.approx(estimate.value[(0,)], abs=1e-8)


def test_setup_commands_stand_first() -> None:
    job, tests = blocks("sh")[:2]
    assert "examples/heat.py" in job
    assert tests.strip() == "sh tests/run"


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
