"""Calls of gradients after the first one do what the first one does: values, types, errors, what is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.program import Program
from tapegen.repeated import Repeated

pytestmark = pytest.mark.compiled

SCALE = 2.0


def polynomial(x: Any, y: float, n: int) -> Any:
    for _ in range(n):
        x = x * x + y
    return x


def scaled(x: Any) -> Any:
    return np.sum(x * x) * SCALE


def root(x: Any) -> Any:
    if x[0] < 0.0:
        raise ValueError("no root")
    return np.sqrt(x[0]) * x[1]


def overwritten(x: Any) -> Any:
    x *= 2.0
    return np.sum(x * x)


def drawn(x: Any, rng: np.random.Generator) -> Any:
    return x * rng.normal()


def structured(p: Any) -> Any:
    return (p["a"] * p["b"][0]).sum() + p["b"][1]


def watched(func: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[bool]]:
    """A function with derivatives, and for each repeated call of it whether it was answered without another look."""
    answered: list[bool] = []
    run = Repeated.run

    def noted(self: Repeated, arguments: Any) -> Any:
        found = run(self, arguments)
        answered.append(found is not None)
        return found

    monkeypatch.setattr(Repeated, "run", noted)
    return tg.differentiable(func, wrt=0, cache=False), answered


def test_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(polynomial, monkeypatch)
    first = func.value_and_grad(1.5, 0.25, 2)
    assert func.value_and_grad(1.5, 0.25, 2) == first
    assert func.value_and_grad(0.5, 0.25, 1) == (0.5, 1.0)
    assert func.grad(0.5, 0.25, 0) == 1.0
    assert answered == [True, True, True]
    assert [type(part) for part in func.value_and_grad(0.5, 0.25, 1)] == [float, float]
    assert [type(part) for part in func.value_and_grad(np.float64(0.5), 0.25, 1)] == [np.float64, np.float64]
    assert [type(part) for part in func.value_and_grad(np.float64(0.5), 0.25, 1)] == [np.float64, np.float64]


def test_the_structure_of_the_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(structured, monkeypatch)
    tree = {"a": np.arange(3.0), "b": (2.0, 1.0)}
    for _ in range(3):
        value, gradient = func.value_and_grad(tree)
        assert value == 7.0
        assert gradient["a"].tolist() == [2.0, 2.0, 2.0]
        assert gradient["b"] == (3.0, 1.0)
    assert answered == [True, True]


def test_what_is_captured_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(scaled, monkeypatch)
    x = np.ones(2)
    for scale in (2.0, 2.0, 3.0, 3.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert func.value_and_grad(x)[0] == 2.0 * scale
    assert any(answered)


def test_errors_are_those_of_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(root, monkeypatch)
    func.value_and_grad(np.array([4.0, 1.0]))
    for _ in range(2):
        with pytest.raises(ValueError, match="no root"):
            func.value_and_grad(np.array([-4.0, 1.0]))
        assert func.value_and_grad(np.array([4.0, 1.0]))[1].tolist() == [0.25, 2.0]
    assert answered == [False, True, False, True]


def test_what_needs_another_look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(overwritten, monkeypatch)
    for _ in range(3):
        x = np.ones(2)
        assert func.value_and_grad(x)[1].tolist() == [8.0, 8.0]
        assert x.tolist() == [2.0, 2.0]
    func, _ = watched(drawn, monkeypatch)
    values = [func.value_and_grad(1.0, np.random.default_rng(k)) for k in (1, 1, 2)]
    assert values[0] == values[1] != values[2]
    assert answered == []


def test_integers_that_need_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    func, answered = watched(lambda x, n: x * (n % 7), monkeypatch)
    for n, again in ((3, None), (4, True), (2**62, False), (5, True)):
        assert func.value_and_grad(2.0, n) == (2.0 * (n % 7), n % 7)
        assert answered[-1:] == ([] if again is None else [again])


def test_nothing_is_kept_of_python_code() -> None:
    func = tg.differentiable(polynomial, backend="python", cache=False)
    func.value_and_grad(1.5, 0.25, 2)
    program: Program = func._last.program
    assert program.repeated is None


def test_numbers_that_are_not_finite_are_found() -> None:
    func = tg.differentiable(lambda x: np.log(x), cache=False)
    with np.errstate(all="ignore"):
        for _ in range(2):
            func.value_and_grad(np.float64(0.0))
    with tg.debug_nans(), pytest.raises(tg.NotFinite):
        func.value_and_grad(np.float64(0.0))
