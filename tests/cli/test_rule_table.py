"""docs/rules*.md are what the command writes."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from tapegen.cli import main
from tapegen.rules import all_refusals

ROOT = pathlib.Path(__file__).parents[2]


PAGES = ("rules.md", "rules_numpy.md", "rules_scipy.md", "rules_python.md", "rules_refused.md")


def test_the_pages_are_up_to_date(tmp_path: pathlib.Path) -> None:
    assert main(["rules", "--pages", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(PAGES)
    gone = () if hasattr(np, "row_stack") else ("| `np.row_stack` |",)  # since NumPy 2.5
    for name in PAGES:
        kept = (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()
        written = (tmp_path / name).read_text(encoding="utf-8").splitlines()
        assert [line for line in kept if not line.startswith(gone)] == written, "python -m tapegen rules --pages docs"


def test_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    printed = capsys.readouterr().out
    assert "| `np.linalg.solve` | pullback | forward, reverse | all | real, complex | yes | a, out |" in printed
    assert "| `np.exp` | partials | forward, reverse | all | real, complex | yes | out |" in printed
    assert "| `math.exp` | partials | forward, reverse | 0 | real | yes | out |" in printed
    assert (
        "| `scipy.linalg.solve_sylvester` | pullback | forward, reverse | no stacks | real | yes | a, b, out |"
        in printed
    )
    assert "| `scipy.optimize.root` | expands | forward, reverse | all | real | no | what its" in printed
    # a tangent is no cotangent that could be clipped
    assert [line for line in printed.splitlines() if "| reverse |" in line] == [
        "| `tg.clip_gradient` | pullback | reverse | all | real | yes | low, high |"
    ]
    rows = [line.split("`")[1] for line in printed.splitlines() if line.startswith("| `")]
    assert not {"guarded", "of_parts", "sum_to", "strong_mul"} & set(rows)  # users do not call them


def test_the_page_says_why_a_function_is_refused() -> None:
    page = (ROOT / "docs" / "rules_refused.md").read_text(encoding="utf-8")
    for refusal in all_refusals():
        assert f"| {refusal.reason} | {refusal.advice} |" in page
