"""What is told of compiling: the line and the log."""

from __future__ import annotations

import io
import itertools
import logging
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.backend import compile_progress

X = np.linspace(0.1, 1.0, 4)


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(text: str) -> str:
    """What a terminal shows at the end."""
    line: list[str] = []
    position = 0
    for character in text:
        if character == "\r":
            position = 0
            continue
        line[position : position + 1] = [character]
        position += 1
    return "".join(line).rstrip()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(compile_progress, "QUIET", 0.0)
    made = Terminal()
    monkeypatch.setattr(compile_progress, "sys", SimpleNamespace(stderr=made, modules=sys.modules))  # not pytest's
    return made


NUMBERS = itertools.count()


def squares() -> Any:
    """A function that has not been compiled before: its text contains another number."""
    number = next(NUMBERS)

    def squares(x):
        total = 0.0
        for k in range(len(x)):
            total += x[k] * x[k] + number
        return total

    return tg.differentiable(squares, backend="numba", cache=False)


def test_a_line_appears_in_a_terminal_and_goes_away(terminal: Terminal) -> None:
    f = squares()
    f.precompile(X, modes=("value", "grad"))
    text = terminal.getvalue()
    assert "tapegen: compiling squares (1 of 2 programs, about " in text
    assert "tapegen: compiling squares_value_and_grad (2 of 2 programs, about " in text
    assert shown(text) == ""
    f.value_and_grad(X)
    assert terminal.getvalue() == text


def test_one_program_is_not_counted(terminal: Terminal) -> None:
    squares().grad(X)
    assert "tapegen: compiling squares_value_and_grad (about " in terminal.getvalue()


def test_nothing_appears_before_a_second(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_progress, "QUIET", 1e3)
    squares().grad(X)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(
    ("setting", "is_terminal", "wanted"), [("auto", False, ""), (False, True, ""), (True, False, "compiling")]
)
def test_the_setting(
    setting: Any, is_terminal: bool, wanted: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Terminal, "isatty", lambda _: is_terminal)
    monkeypatch.setattr(tg.config, "progress", setting)
    squares().grad(X)
    text = terminal.getvalue()
    assert wanted in text and bool(wanted) == bool(text)


def test_there_is_no_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_progress, "sys", SimpleNamespace(stderr=None, modules=sys.modules))
    np.testing.assert_array_equal(squares().grad(X), 2.0 * X)


def test_a_notebook_shows_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shows: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shows.append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shows.append(data["text/plain"])
        return Handle()

    class Shell:
        kernel = None

    module = type(sys)("IPython")
    module.get_ipython = Shell  # type: ignore[attr-defined]
    part = type(sys)("IPython.display")
    part.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", part)
    monkeypatch.setattr(compile_progress, "QUIET", 0.0)
    squares().grad(X)
    assert len(shows) == 2 and shows[0].startswith("tapegen: compiling squares_value_and_grad") and shows[1] == ""


def test_the_log_says_what_why_and_how_long(caplog: pytest.LogCaptureFixture) -> None:
    f = tg.differentiable(lambda x: (x, np.sum(x * x)), backend="numba", cache=False)
    fixed = X.copy()
    fixed.flags.writeable = False
    with caplog.at_level(logging.INFO, "tapegen"):
        f(X)
        f(X)
        f(fixed)
    analyzed, first, second = [record.getMessage() for record in caplog.records]
    assert analyzed.startswith("analyzed test_the_log_says_what_why_and_how_long.<locals>.<lambda> in ")
    assert analyzed.endswith(" s: first call")
    assert first.startswith("compiled lambda_ (array(float64, 1d, C)) in ")
    assert first.endswith(" s: its first call")
    assert second.endswith(" s: x is read-only")


@dataclass
class Setup:
    rate: float
    steps: int


SCALE = 2.0
WEIGHTS = np.ones(3)


def scaled(x: Any, n: int = 3, how: str = "sum", setup: Any = None) -> Any:
    total = 0.0
    for _ in range(n):
        total += SCALE * np.sum(x * x) * WEIGHTS.sum()
    return total if setup is None else total + np.sum(x.reshape((1,) * setup.steps + (-1,)))


def test_the_log_says_why_there_is_a_new_program(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = tg.differentiable(scaled, backend="python")

    def reason(*args: Any, **options: Any) -> str:
        caplog.clear()
        with caplog.at_level(logging.INFO, "tapegen"):
            f.with_options(**options).grad(*args)
        return " | ".join(record.getMessage().partition(" s: ")[2] for record in caplog.records)

    assert reason(X) == "first call"
    assert reason(X) == ""
    assert reason(X, fastmath=True) == "fastmath=True, not False"
    assert reason(X.astype(np.float32)) == "x is an array of float32, not of float64"
    assert reason(np.ones((3, 3))) == "x has 2 axes, not 1"
    assert reason(np.ones((3, 1))) == "axis 1 of x has size 1"
    assert reason(np.ones(6)[::2]) == "the memory layout of x is A, not C"
    assert reason(2.0) == "x is a Python float64, not an array of float64"
    assert reason(X, 3, "mean") == "how is 'mean', not 'sum'"
    assert reason(X, 3, "mean", Setup(0.1, 2)) == "setup is of class Setup, not None"
    assert reason(X, 3, "mean", Setup(0.1, 3)) == "setup.steps is 3, not 2"
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert reason(X) == "the captured value SCALE has changed"
    monkeypatch.setitem(globals(), "WEIGHTS", np.ones((3, 3)))
    assert reason(X) == "the type of the captured WEIGHTS has changed"
