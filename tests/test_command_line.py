"""docs/command_line.md: its commands run as they stand there, its Python as a module."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command in a process of its own."""
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder), "MPLCONFIGDIR": str(folder)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_commands_of_the_documentation(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "heat.py", tmp_path / "examples")
    commands = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) >= 4
    for command in commands:
        assert command[:3] == ["python", "-m", "tapegen"]
        done = run(tmp_path, *command[1:])
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout or "-o" in command or "write" in command


def test_python_of_the_documentation(tmp_path: Path) -> None:
    (block,) = blocks("python")
    (tmp_path / "energy.py").write_text(block, encoding="utf-8")
    done = run(tmp_path, "-m", "tapegen", "write", "energy.py", "--readable")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^def (\w+)", done.stdout, re.MULTILINE) == ["energy_value_and_grad", "energy_value_and_grad_2"]
