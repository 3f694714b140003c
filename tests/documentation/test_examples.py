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
from tests.oracle import floating, numerical_gradient

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
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
