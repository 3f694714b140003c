"""Faults of tapegen itself, planted in each stage, and what stays the user's own."""

from __future__ import annotations

import pickle
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import numpy as np
import pytest

import tapegen as tg
from tapegen.api import differentiable_function
from tapegen.cli import main
from tapegen.errors import InternalError
from tapegen.export.module import ExportRequest, module_text
from tapegen.pipeline.artifacts import generated_text

SCALE = np.array([1.5, np.inf])


PLANTED = "KeyError('planted')"


def planted() -> Mock:
    """Stands in for a part of tapegen, and fails without a frame of these tests."""
    return Mock(side_effect=KeyError("planted"))


@dataclass
class Spring:
    stiffness: float
    rest: np.ndarray


class Range(NamedTuple):
    low: float
    high: float


def stretched(x: np.ndarray, spring: Spring) -> Any:
    # comments and helpers travel with the function
    return spring.stiffness * np.sum((x - spring.rest) ** 2)


def energy(x: np.ndarray, spring: Spring, within: Range, steps: int = 2) -> Any:
    total = 0.0
    for _ in range(steps):
        total = total + np.sin(total) + stretched(x, spring) * SCALE[0]
    return total * within.low


def simple(x: np.ndarray) -> Any:
    return np.sum(x * x)


def squares(x: np.ndarray) -> Any:
    return x * x


ARGUMENTS = (np.array([0.5, -1.0]), Spring(2.0, np.zeros(2)), Range(0.5, 1.0))
X = np.array([0.5, -1.0])

STAGES = [
    ("tapegen.runtime.specialization.lower_function", "lowering"),
    ("tapegen.frontend.expressions.expressions.evaluate", "lowering"),
    ("tapegen.transform.simplify.cleanup.CopyPropagation", "deriving"),
    ("tapegen.transform.autodiff.adjoint_calls.rule_for", "deriving"),
    ("tapegen.pipeline.artifacts.generated_text.emit", "printing"),
    ("tapegen.pipeline.artifacts.executables.build_python", "compiling"),
    ("tapegen.runtime.bound_call.value_of", "returning"),
]


@pytest.fixture(autouse=True)
def files_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def caught(call: Callable[[], Any]) -> InternalError:
    with pytest.raises(InternalError) as found:
        call()
    return found.value


def reproduced(error: InternalError) -> InternalError:
    """What the file that comes with an error raises while the fault is still there."""
    return caught(lambda: runpy.run_path(error.reproducer))


@pytest.mark.parametrize(("target", "stage"), STAGES)
def test_a_fault_names_the_stage_and_the_place(target: str, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(function: Any) -> range:
        first = function.__code__.co_firstlineno
        return range(first, first + 6)

    monkeypatch.setattr(target, planted())
    error = caught(lambda: tg.differentiable(energy, backend="python").value_and_grad(*ARGUMENTS))
    assert error.stage == stage
    assert repr(error.__cause__) == PLANTED
    assert error.span is not None
    assert error.span.file == __file__
    assert error.span.line in lines(energy) or error.span.line in lines(stretched)
    assert "KeyError: 'planted'" in str(error)
    assert error.reproducer in str(error)
    assert "^" in str(error)
    again = reproduced(error)
    assert again.stage == stage
    assert repr(again.__cause__) == PLANTED


def test_a_reproducer_runs_without_the_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("tapegen.pipeline.passes.reverse_sweeps.reverse", planted())
        error = caught(lambda: tg.differentiable(energy, backend="python").grad(*ARGUMENTS))
    text = Path(error.reproducer).read_text(encoding="utf-8")
    assert "# comments and helpers travel with the function" in text
    names = runpy.run_path(error.reproducer)
    assert np.array_equal(names["SCALE"], SCALE)
    assert names["args"][0].shape == (2,)
    assert type(names["args"][1]).__name__ == "Spring"
    assert type(names["args"][2]).__name__ == "Range"
    assert np.isfinite(names["f"].grad(*names["args"])).all()


def test_an_error_is_pickled_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapegen.pipeline.passes.reverse_sweeps.reverse", planted())
    error = caught(lambda: tg.grad(simple, backend="python")(X))
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.stage, again.reproducer) == (str(error), error.stage, error.reproducer)


def taped() -> Any:
    with tg.GradientTape() as tape:
        x = tg.Variable(X)
        y = tg.differentiable(simple, backend="python")(x)
    return tape.gradient(y, x)


ENTRIES: dict[str, Callable[[], Any]] = {
    "call": lambda: tg.differentiable(simple)(X),
    "grad": lambda: tg.grad(simple, backend="python")(X),
    "value_and_grad": lambda: tg.value_and_grad(simple, backend="python")(X),
    "vjp": lambda: tg.vjp(simple, X, backend="python"),
    "jvp": lambda: tg.jvp(simple, [X], [X], backend="python"),
    "jacobian": lambda: tg.jacobian(squares, backend="python")(X),
    "hessian": lambda: tg.hessian(simple, backend="python")(X),
    "hvp": lambda: tg.hvp(simple, [X], [X], backend="python"),
    "batch": lambda: tg.batch(simple, backend="numba").grad(np.stack([X, X])),
    "batch of vjp": lambda: tg.batch(simple, backend="python").vjp(np.stack([X, X]))[1](np.ones(2)),
    "linearize": lambda: tg.linearize(simple, X, backend="python")[1](X),
    "inspect": lambda: str(tg.differentiable(simple).inspect(X)),
    "tape": taped,
    "written": lambda: module_text([ExportRequest(tg.differentiable(simple), (X,), {})]),
    "library": lambda: tg.aot.build(simple, X, modes=["grad"], directory="/nonexistent"),
}


@pytest.mark.parametrize(
    "target", ["tapegen.runtime.specialization.lower_function", "tapegen.transform.simplify.cleanup.CopyPropagation"]
)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_has_the_boundary(entry: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, planted())
    monkeypatch.setattr("tapegen.pipeline.artifacts.program.Program.on_disk", lambda *_, **__: (None, None))
    differentiable_function._of_function.cache_clear()
    error = caught(ENTRIES[entry])
    assert error.span is not None
    assert error.span.file == __file__
    assert repr(error.__cause__) == PLANTED
    assert repr(reproduced(error).__cause__) == PLANTED


def test_the_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.py"
    file.write_text("def f(x):\n    return x * x\n")
    monkeypatch.setattr("tapegen.transform.simplify.cleanup.CopyPropagation", planted())
    assert main(["show", f"{file}::f", "--args", "f8"]) == 1
    assert f"InternalError: {file}:1:1: tapegen itself failed while deriving f" in capsys.readouterr().err


def test_a_fault_inside_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapegen.backend.numba.build.deep", planted())
    error = caught(lambda: tg.differentiable(simple, backend="numba", cache=False).grad(X))
    assert error.stage == "compiling"
    assert error.span is not None
    assert error.span.file == __file__
    assert repr(reproduced(error).__cause__) == PLANTED


def test_text_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    emit = generated_text.emit

    def misspelt(*args: Any, **kwargs: Any) -> Any:
        source = emit(*args, **kwargs)
        object.__setattr__(source, "text", source.text.replace("x_bar", "x_bra", 1))
        return source

    monkeypatch.setattr("tapegen.pipeline.artifacts.generated_text.emit", misspelt)
    error = caught(lambda: tg.differentiable(simple, backend="python").grad(X))
    assert error.stage == "running"
    assert "NameError" in error.reason


def test_no_file_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapegen.transform.simplify.cleanup.CopyPropagation", planted())
    monkeypatch.setattr("tempfile.mkdtemp", Mock(side_effect=OSError("the disk is full")))
    error = caught(lambda: tg.grad(simple, backend="python")(X))
    assert error.reproducer == ""
    assert str(error).endswith("please report it.")


# ---- the user's own --------------------------------------------------------------------------------------------------


class Sensor:
    @property
    def gain(self) -> float:
        raise LookupError("no sensor is connected")


def read(x: float, sensor: Sensor) -> float:
    return x * sensor.gain


def undefined(x: float) -> float:
    return x * missing  # type: ignore[name-defined]  # noqa: F821


def failing(x: float) -> Any:
    return {"a": x}["b"]


@pytest.mark.parametrize(
    ("func", "args", "error"),
    [(read, (1.0, Sensor()), LookupError), (undefined, (1.0,), NameError), (failing, (1.0,), KeyError)],
)
@pytest.mark.parametrize("form", ["grad", "jacobian", "vjp"])
def test_errors_of_the_program_stay(form: str, func: Any, args: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error) as plain:
        func(*args)
    derived = tg.vjp if form == "vjp" else getattr(tg, form)(func, backend="python")
    with pytest.raises(error) as found:
        derived(*((func, *args) if form == "vjp" else args))
    assert type(found.value) is type(plain.value)
    assert str(found.value) == str(plain.value)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError("full"), UserWarning("as an error")])
def test_what_is_no_fault_passes(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapegen.transform.simplify.cleanup.CopyPropagation", Mock(side_effect=error))
    with pytest.raises(type(error)) as found:
        tg.grad(simple, backend="python")(X)
    assert found.value is error
