"""Types that a user's program sees: both checkers run over a program with `assert_type` and calls that are wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("typed_program.py")
ROOT = PROGRAM.parent.parent.parent


def report(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command, str(PROGRAM)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return f"{done.stdout}{done.stderr}"


def test_mypy() -> None:
    """Strictly: what the project's settings relax is switched on in the program."""
    assert report("mypy", "--no-error-summary") == ""


def test_pyright() -> None:
    assert report("basedpyright", "--level", "error") == "0 errors, 0 warnings, 0 notes\n"


def test_checkers_object(tmp_path: Path) -> None:
    """Neither checker is silent because it took all for Any."""
    wrong = tmp_path / "wrong.py"
    text = PROGRAM.read_text(encoding="utf-8")
    lines = [line.split("  # type: ignore")[0] for line in text.splitlines()]
    count = sum("# type: ignore" in line for line in text.splitlines())
    wrong.write_text("\n".join(lines), encoding="utf-8")
    for command in (
        ["mypy", "--no-error-summary", "--config-file", "pyproject.toml"],
        ["basedpyright", "--level", "error"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command, str(wrong)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.stdout.count(": error: ") + done.stdout.count(" - error: ") >= count
