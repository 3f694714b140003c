"""What shells complete with the scripts of `tapegen completion`."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tapegen.cli import main


def printed(shell: str, capsys: pytest.CaptureFixture) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tapegen exp", {"explain"}),
        ("tapegen c", {"check", "cache", "completion"}),
        ("tapegen show heat.py::march --for", {"--form"}),
        ("tapegen show heat.py::march --form ", {"pair", "joint", "compiled", "primal", "tangent"}),
        ("tapegen cache ", {"info", "clear"}),
        ("tapegen write he", {"heat.py"}),
        ("tapegen write heat.py::", {"march", "misfit"}),
        ("tapegen write heat.py::mi", {"misfit"}),
        ("tapegen build heat.py::march --args 'f8[:], f8' --b", {"--blas"}),
        ("tapegen write a", {"a $(touch evil).py"}),
        ("tapegen write nothing.py::", set()),
    ],
)
def test_bash(line: str, expected: set[str], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "heat.py").write_text("def march(u):\n    return u\n\n\ndef misfit(u):\n    def inner(): ...\n")
    (tmp_path / "a $(touch evil).py").write_text("")
    words = line.replace("::", " :: ").split(" ")
    program = f"""
        COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)} COMP_CWORD={len(words) - 1}
        COMP_WORDS=({" ".join(map(shlex.quote, words))})
        _tapegen
        printf '%s\\n' "${{COMPREPLY[@]}}"
        """
    text = printed("bash", capsys) + program
    done = subprocess.run(["bash", "--norc", "-c", text], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert set(done.stdout.splitlines()) - {""} == expected
    assert done.stderr == ""
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_whole(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    text = printed(shell, capsys)
    assert all(command in text for command in ("show", "write", "build", "check", "explain", "rules", "cache"))
    assert ("readable" in text and "x86-64-v2" in text) or shell == "bash"
    if shutil.which(shell):
        (tmp_path / "script").write_text(text)
        done = subprocess.run([shell, "-n", tmp_path / "script"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
