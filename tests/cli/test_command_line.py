"""docs/command_line.md and docs/cache.md: their commands run as they stand there, their Python as a module."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tapegen.backend.cache.store import FOLDER, LIMIT, SWITCH

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
CACHE = (ROOT / "docs" / "cache.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = TEXT) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """One command in a process of its own."""
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder), "MPLCONFIGDIR": str(folder)}
    environment |= variables
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


def test_the_documentation_of_the_cache(tmp_path: Path) -> None:
    block, fit = blocks("python", CACHE)
    (tmp_path / "fit.py").write_text(fit + "\nprint(x.round(6))\n", encoding="utf-8")
    assert run(tmp_path, "fit.py", **{SWITCH: "0"}).stdout == "[1. 2. 3.]\n"
    kept = block.replace("@differentiable(cache=False)  #", "@differentiable  #")
    assert kept != block
    call = "\n\nif __name__ == '__main__':\n    import numpy as np\n\n    print(energy.grad(np.ones(2)))\n"
    for name, text in (("not_kept", block), ("kept", kept)):
        (tmp_path / f"{name}.py").write_text(text + call, encoding="utf-8")

    def held(name: str, **variables: str) -> dict[str, str]:
        """What the command of the page says after a program has run with these settings."""
        done = run(tmp_path, f"{name}.py", **variables)
        assert (done.returncode, done.stdout, done.stderr) == (0, "[2. 2.]\n", "")
        shown = run(tmp_path, *commands["info"], **variables).stdout
        return {line[:10].strip(): line[11:] for line in shown.splitlines()}

    commands = {text.split()[-1]: text.split()[1:] for text in re.findall(r"`(python -m tapegen cache \w+)`", CACHE)}
    defaults = dict(re.findall(r"^\| `(\w+?)(?:=0)?` \| (.*) \|$", CACHE, re.MULTILINE))
    assert list(defaults) == [FOLDER, LIMIT, SWITCH] and "512 by default" in defaults[LIMIT]
    assert held("not_kept")["entries"] == "0"
    assert held("kept", **{SWITCH: "0"}) == {
        **{"directory": f"{tmp_path}/.cache/tapegen", "cache": f"off ({SWITCH})"},
        **{"entries": "0", "size": "0.0 MB of 512 MB"},
    }
    elsewhere = held("kept", XDG_CACHE_HOME=str(tmp_path / "home"), **{LIMIT: "7"})
    assert elsewhere["directory"] == f"{tmp_path}/home/tapegen" and elsewhere["size"].endswith(" of 7 MB")
    assert int(elsewhere["entries"]) > 0
    assert (tmp_path / "home" / "tapegen").stat().st_mode & 0o777 == 0o700
    assert held("kept", **{FOLDER: str(tmp_path / "own")})["directory"] == str(tmp_path / "own")
    cleared = run(tmp_path, *commands["clear"], **{FOLDER: str(tmp_path / "own")})
    assert cleared.stdout.startswith(f"{elsewhere['entries']} entries deleted")
    assert not [*(tmp_path / "own").iterdir()]
