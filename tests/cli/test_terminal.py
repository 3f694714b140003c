"""Color of the command line: where a person reads it, and nowhere else."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tapegen.cli import main

KERNEL = """
import numpy as np


def march(u0, n):
    u = u0
    for _ in range(n):
        u = np.tanh(u)
    return np.sum(u)
"""


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    file = tmp_path / "kernel_in_color.py"
    file.write_text(KERNEL)
    return f"{file}::march"


def become_interactive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)


def said(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


ARGUMENTS = ("--args", "f8[:], i8")


@pytest.mark.parametrize("command", [("show",), ("show", "--stage", "fuse_loops"), ("explain",)])
def test_color_changes_no_text(
    command: tuple[str, ...], kernel: str, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = said(capsys, *command, kernel, *ARGUMENTS)
    assert "\x1b" not in plain
    become_interactive(monkeypatch)
    shown = said(capsys, *command, kernel, *ARGUMENTS)
    assert "\x1b[" in shown
    assert re.sub(r"\x1b\[\d*m", "", shown) == plain


def test_keywords_and_tapes_have_colors(
    kernel: str, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    become_interactive(monkeypatch)
    shown = said(capsys, "show", kernel, *ARGUMENTS)
    assert "\x1b[35mfor\x1b[0m" in shown
    assert "\x1b[33mu_1_tape\x1b[0m" in shown
    assert "\x1b[33mrecorded\x1b[0m" in said(capsys, "explain", kernel, *ARGUMENTS)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_color_where_it_is_not_wanted(
    name: str, value: str, kernel: str, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    become_interactive(monkeypatch)
    monkeypatch.setenv(name, value)
    assert "\x1b" not in said(capsys, "show", kernel, *ARGUMENTS)
