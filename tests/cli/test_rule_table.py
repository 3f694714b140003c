"""docs/rules.md is what the command prints."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np

from tapegen.rules import all_refusals

ROOT = pathlib.Path(__file__).parents[2]


def test_the_table_is_up_to_date() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "tapegen", "rules"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    kept = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8").splitlines()
    gone = () if hasattr(np, "row_stack") else ("| `np.row_stack` |",)  # since NumPy 2.5
    assert [line for line in kept if not line.startswith(gone)] == printed.splitlines(), (
        "python -m tapegen rules > docs/rules.md"
    )
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


def test_the_table_says_why_a_function_is_refused() -> None:
    table = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8").partition("## Refused")[2]
    for refusal in all_refusals():
        assert f"| {refusal.reason} | {refusal.advice} |" in table
