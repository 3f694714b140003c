"""Tracebacks of errors: the frames of the user's program, and settings that show all of them."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import PACKAGE

X = np.array([1.0, 2.0])


@pytest.fixture(autouse=True)
def user_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tg.config, "tracebacks", "user")


def frames(error: BaseException) -> list[str]:
    """The functions in the traceback, those of tapegen with their file."""
    entries = traceback.extract_tb(error.__traceback__)
    return [entry.filename if entry.filename.startswith((PACKAGE, "<tapegen")) else entry.name for entry in entries]


def picks(x: np.ndarray) -> Any:
    return x[3]


def solves(x: np.ndarray) -> Any:
    return np.sum(np.linalg.solve(np.outer(x, x), x))


def converts(x: np.ndarray) -> Any:
    try:
        return x[3]
    except IndexError as error:
        raise ValueError("too short") from error


def builds(x: np.ndarray) -> Any:
    return eval("x[0]")


SCRIPT = """\
import numpy as np
import tapegen as tg


def f(x):
    return np.sum(eval("x"))


print(tg.grad(f)(np.ones(3)))
"""

CALLS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "value_and_grad": lambda f: tg.differentiable(f, backend="python").value_and_grad(X),
    "grad": lambda f: tg.differentiable(f, backend="python").grad(X),
    "vjp": lambda f: tg.differentiable(f, backend="python").vjp(X),
    "jvp": lambda f: tg.differentiable(f, backend="python").jvp((X,), (X,)),
    "tg.grad": lambda f: tg.grad(f, backend="python")(X),
    "tg.vjp": lambda f: tg.vjp(f, X, backend="python"),
    "tg.jvp": lambda f: tg.jvp(f, (X,), (X,), backend="python"),
    "jacobian": lambda f: tg.jacobian(f, backend="python")(X),
    "hessian": lambda f: tg.hessian(f, backend="python")(X),
    "hvp": lambda f: tg.hvp(f, (X,), (X,), backend="python"),
    "linearize": lambda f: tg.linearize(f, X, backend="python"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_error_of_the_program_shows_its_frames(call: Callable[[Callable[..., Any]], Any]) -> None:
    with pytest.raises(IndexError) as caught:
        call(picks)
    assert frames(caught.value) == ["test_an_error_of_the_program_shows_its_frames", "<lambda>", "picks"]
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_refusal_shows_the_call(call: Callable[[Callable[..., Any]], Any]) -> None:
    with pytest.raises(tg.TapegenError) as caught:
        call(builds)
    assert frames(caught.value) == ["test_a_refusal_shows_the_call", "<lambda>"]
    text = "".join(traceback.format_exception(caught.value))
    assert PACKAGE not in text
    assert '    return eval("x[0]")\n           ^^^^' in text


def test_frames_of_a_library_that_the_program_calls_stay() -> None:
    with pytest.raises(np.linalg.LinAlgError) as caught:
        tg.differentiable(solves, backend="python").grad(X)
    found = frames(caught.value)
    assert found[:3] == ["test_frames_of_a_library_that_the_program_calls_stay", "solves", "solve"]


def test_causes_in_the_program_stay() -> None:
    with pytest.raises(ValueError, match="too short") as caught:
        tg.grad(converts, backend="python")(X)
    assert frames(caught.value)[1:] == ["converts"]
    cause = caught.value.__cause__
    assert isinstance(cause, IndexError)
    assert frames(cause) == ["converts"]
    assert "Raised" not in "".join(traceback.format_exception(caught.value))


def test_an_error_that_is_handled_around_the_call_stays() -> None:
    try:
        raise KeyError("around")
    except KeyError:
        with pytest.raises(IndexError) as caught:
            tg.grad(picks, backend="python")(X)
    assert repr(caught.value.__context__) == "KeyError('around')"


def test_a_call_without_derivatives_hides_frames() -> None:
    with pytest.raises(tg.NotDifferentiable, match="eval") as caught:
        tg.differentiable(builds)(X)
    assert frames(caught.value) == ["test_a_call_without_derivatives_hides_frames"]


def test_a_pullback_hides_frames() -> None:
    _, pullback = tg.vjp(lambda x: 2.0 * x, X, backend="python")
    with pytest.raises(tg.BadArgument, match="shape") as caught:
        pullback(1.0)
    assert frames(caught.value) == ["test_a_pullback_hides_frames"]


def watches_a_number() -> None:
    with tg.GradientTape() as tape:
        tape.watch(3.0)


def leaves_the_tape() -> None:
    with tg.GradientTape() as tape:
        x = tg.constant([1.0, 2.0])
        tape.watch(x)
        float(x[0])


def has_no_such_source() -> None:
    with tg.GradientTape() as tape:
        y = 2.0 * tg.Variable([1.0, 2.0])
    tape.gradient(y, 3.0)


def stores_into_a_tensor() -> None:
    tg.constant([1.0, 2.0])[0] = 3.0


def assigns_another_shape() -> None:
    tg.Variable([1.0, 2.0]).assign([1.0])


def concatenates_shapes_that_do_not_fit() -> None:
    np.concatenate([tg.constant(np.ones((2, 2))), tg.constant(np.ones((2, 3, 1)))])


@pytest.mark.parametrize(
    "call",
    [
        *(watches_a_number, leaves_the_tape, has_no_such_source, stores_into_a_tensor, assigns_another_shape),
        concatenates_shapes_that_do_not_fit,
    ],
)
def test_tapes_hide_frames(call: Callable[[], None]) -> None:
    with pytest.raises((tg.TapegenError, ValueError, TypeError)) as caught:
        call()
    found = frames(caught.value)
    assert found[:2] == ["test_tapes_hide_frames", call.__name__]
    assert not any(name.startswith(PACKAGE) for name in found)


def test_a_warning_of_the_decorator_names_the_line_of_the_user() -> None:
    f = tg.differentiable(picks)
    for decorate in (tg.differentiable, tg.differentiable(wrt=0)):
        with pytest.warns(UserWarning, match="is differentiable already") as caught:
            decorate(f)
        assert caught[0].filename == __file__


def test_all_frames_are_shown_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tg.config, "tracebacks", "full")
    with pytest.raises(IndexError) as caught:
        tg.grad(picks, backend="python")(X)
    assert any(name.startswith(PACKAGE) for name in frames(caught.value))


def test_what_a_terminal_shows(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    called = "^" * 10 if sys.version_info < (3, 13) else "~" * 10
    assert (
        done.stderr
        == f"""\
Traceback (most recent call last):
  File "{script}", line 9, in <module>
    print(tg.grad(f)(np.ones(3)))
          {called}^^^^^^^^^^^^
tapegen.errors.NotDifferentiable: {script}:6:19: 'eval' cannot be followed.
    return np.sum(eval("x"))
                  ^^^^^^^^^
Write the expression itself.
"""
    )


def test_settings_are_checked() -> None:
    with pytest.raises(tg.BadArgument, match=r"^tg\.config\.tracebacks = 'all' is unknown\.\nUse 'user' or 'full'\.$"):
        tg.config.tracebacks = "all"  # type: ignore[assignment]
    with pytest.raises(AttributeError, match="has no setting 'traceback'; it has tracebacks"):
        tg.config.traceback = "full"  # type: ignore[attr-defined]
    assert repr(tg.config).startswith("Config(tracebacks='user'")
