"""The gradients that the examples follow, on small problems of the same kind."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tapegen.tape.tensors.tensor import Traced
from tests.documentation.pages import without_compiling
from tests.oracle import floating, numerical_gradient

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if request.param in LEARNED:
        without_compiling(monkeypatch)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop(request.param, None)
    return importlib.import_module(request.param)


def check(function: Any, args: tuple, wrt: tuple[int, ...], gradient: tuple) -> None:
    paths = [path for path in floating(args) if path[0] in wrt]
    estimate = numerical_gradient(function.python, args, paths=paths)
    have = floating(dict(zip(wrt, gradient, strict=True)))
    assert have.keys() == set(paths)
    for path, want in estimate.value.items():
        scale = max(1.0, float(np.max(np.abs(want))))
        np.testing.assert_allclose(have[path], want, rtol=0, atol=1e-6 * scale, err_msg=str(path))


@pytest.mark.parametrize("example", ["heat"], indirect=True)
def test_heat(example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example, "READINGS", 2)
    monkeypatch.setattr(example, "STEPS", 3)
    rng = np.random.default_rng(0)
    args = (rng.uniform(size=(5, 6)), 0.15, np.array([1, 3]), np.array([2, 4]), rng.uniform(size=(2, 2)), 0.1)
    check(example.misfit, args, (0, 1), example.misfit.value_and_grad(*args)[1])
    rod = (np.array([3.0, 1.0, 2.0, 0.5]), 0.2, 10.0)
    march = importlib.import_module("tapegen").differentiable(example.march, wrt=("u0", "k"))
    check(march, rod, (0, 1), march.value_and_grad(*rod)[1])


@pytest.mark.parametrize("example", ["carbon"], indirect=True)
def test_carbon(example: ModuleType) -> None:
    times, measured = (part[:40] for part in example.record())
    assert np.isnan(measured).any()  # a missing week must not poison the gradient
    p = example.unflatten(example.flatten(example.START) + 0.3)
    args = (p, times, example.emissions(times), measured)
    check(example.misfit, args, (0,), (example.misfit.grad(*args),))


@pytest.mark.parametrize("example", ["digits"], indirect=True)
def test_digits(example: ModuleType) -> None:
    rng = np.random.default_rng(0)
    params = example.initial((5, 4, 3, 10), rng)
    args = (params, rng.uniform(size=(3, 5)), np.array([1, 0, 7]), 0.01)
    check(example.loss, args, (0,), (example.loss.grad(*args),))


@pytest.mark.parametrize("example", ["mnist_tape"], indirect=True)
def test_mnist_tape(example: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(example, "EPOCHS", 2)
    monkeypatch.setattr(example, "OUTPUT", tmp_path / "picture.png")
    assert example.main()["accuracy"] > 0.9
    assert (tmp_path / "picture.png").stat().st_size > 10_000


@pytest.mark.parametrize("example", ["tape_guide"], indirect=True)
def test_tape_guide(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(example, "OUTPUT", tmp_path)
    monkeypatch.setattr(Traced, "printed_as", "tg")
    example.main()
    said = capsys.readouterr().out
    assert "d(x**2)/dx at 3: tg.Tensor(6.0" in said and "at 100: tg.Tensor(1.0" in said
    assert {path.name for path in tmp_path.iterdir()} == {"tape_branch.png", "tape_sigmoid.png"}
    before, after = map(float, re.findall(r"loss ([\d.]+) -> ([\d.]+)", said)[0])
    assert after < 0.1 * before


# what `main` learns at a small size, as bounds of what it returns
LEARNED: dict[str, tuple[dict[str, Any], dict[str, tuple[float, float]]]] = {
    "bridge": ({"WIDTH": 8, "HEIGHT": 4, "ITERATIONS": 12}, {"after": (0.0, 12.0), "share": (0.399, 0.401)}),
    "epidemic": ({"DAYS": 45, "STEPS": 2}, {"worst": (0.0, 3.0), "after": (0.5, 1.2)}),
    "greeks": ({"STEPS_PER_MONTH": 1, "PATHS": 500}, {"price": (6.0, 8.0), "difference": (0.0, 1e-6)}),
    "heston": ({"NODES": 32, "NOISE": 1e-5}, {"rms": (0.0, 2e-5), "worst": (0.0, 4.0)}),
    "lens": ({"RAYS": 5, "EVALUATIONS": 8}, {"before": (1900.0, 2200.0), "after": (0.0, 300.0)}),
    "lorenz96": ({"WINDOW": 6, "FORECAST": 8}, {"first guess": (1.0, 3.0), "analysis": (0.0, 0.4)}),
    "neural_ode": ({"STEPS": 8, "ITERATIONS": 10}, {"misfit": (0.0, 0.2)}),
    "nile": ({}, {"noise": (15_098.0, 15_100.0), "drift": (1_468.0, 1_470.0)}),
    "orbits": ({"STEPS": 20}, {"period": (6.31, 6.34), "miss": (0.0, 1e-10)}),
    "seismic": ({"STEPS": 110, "SOURCES": 2, "ITERATIONS": 4}, {"misfit": (0.0, 0.7), "map": (0.0, 0.99)}),
    "spectrum": ({"CHANNELS": 60, "EXPERIMENTS": 2}, {"worst": (0.0, 4.0), "inside": (0.7, 1.0)}),
    "sunspots": ({"SINCE": 1930}, {"period": (10.0, 12.0)}),
}


@pytest.mark.parametrize("example", LEARNED, indirect=True)
def test_what_is_learned(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    small, bounds = LEARNED[example.__name__]
    for name, value in small.items():
        assert hasattr(example, name), name
        monkeypatch.setattr(example, name, value)
    monkeypatch.setattr(example, "OUTPUT", tmp_path / "picture.png")
    result = example.main()
    for name, (low, high) in bounds.items():
        assert low <= result[name] <= high, (name, result)
    assert "saved" in capsys.readouterr().out
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_the_gallery_shows_every_example() -> None:
    page = (EXAMPLES.parent / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r'--8<-- "examples/(\w+)\.py"', page)
    assert sorted(shown) == sorted({path.stem for path in EXAMPLES.glob("*.py")} - {"pictures"})
    tutorial = (EXAMPLES.parent / "docs" / "tutorial.md").read_text(encoding="utf-8")
    pictures = {path.name for path in (EXAMPLES.parent / "docs" / "pictures").iterdir()}
    assert set(re.findall(r"\]\(pictures/([\w.]+)\)", page + tutorial)) == pictures
