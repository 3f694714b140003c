"""docs/rules.md is what the command prints."""

from __future__ import annotations

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent


def test_the_table_is_up_to_date() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "tapegen", "rules"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    assert (ROOT / "docs" / "rules.md").read_text(encoding="utf-8") == printed, (
        "python -m tapegen rules > docs/rules.md"
    )
    assert "| `np.linalg.solve` | pullback | forward, reverse | real, complex | a, out |" in printed
    assert "| `np.exp` | partials | forward, reverse | real, complex | out |" in printed
    # a tangent is no cotangent that could be clipped
    assert [line for line in printed.splitlines() if "| reverse |" in line] == [
        "| `tg.clip_gradient` | pullback | reverse | real | low, high |"
    ]
