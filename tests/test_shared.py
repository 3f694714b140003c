"""Closures that are made anew by each call of the function around them: derived once, and never one for another."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable, grad, partials
from tapegen.rules import registry

X = np.array([0.5, -1.5, 2.0])


def parts(func: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What the program of a new closure is made into, after its gradient was seen to be right."""
    made = differentiable(func, backend="python", **options)
    x = args[0]
    step = 1e-6 * np.cos(np.arange(x.size))
    slope = (func(x + step, *args[1:]) - func(x - step, *args[1:])) / 2.0
    assert np.sum(made.grad(*args) * step) == pytest.approx(slope, rel=1e-6)
    return made._specialise(args, {}).program.parts


def misfit(data: np.ndarray, power: int = 2, scale: Any = 1.0) -> Callable[[np.ndarray], float]:
    def model(x: np.ndarray) -> np.ndarray:
        return data * x + scale

    def loss(x: np.ndarray) -> float:
        return np.sum((model(x) - data) ** power)

    return loss


def test_closures_of_one_code_share_what_is_made_of_them() -> None:
    first = parts(misfit(X), X)
    assert parts(misfit(X + 1.0), X) is first
    assert parts(misfit(X[:2]), X[:2]) is first  # arrays are read, their elements are not part of the program
    assert parts(misfit(X, 4), X) is not first
    assert parts(misfit(X, scale=2.0), X) is not first
    assert parts(misfit(X, scale=X), X) is not first
    assert parts(misfit(X), X, wrt=0, boundscheck=False) is not first


def test_functions_inside_are_told_apart_by_their_text() -> None:
    def through(inner: Callable[[Any], Any]) -> Callable[[np.ndarray], float]:
        return lambda x: np.sum(inner(x) * 2.0)

    def twice(k: float) -> Callable[[Any], Any]:
        return lambda x: k * x * x

    first = parts(through(twice(2.0)), X)
    assert parts(through(twice(2.0)), X) is first
    assert parts(through(twice(3.0)), X) is not first
    assert parts(through(lambda x: 2.0 * x * x), X) is not first
    assert parts(through(np.sin), X) is not first
    assert parts(through(np.cos), X) is not first


def test_numbers_that_a_rule_reads_are_part_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_RULES", dict(registry._RULES))
    factor = 2.0

    def scaled(x: Any) -> Any:
        return factor * x

    @partials(scaled)
    def scaled_partials(x: Any) -> Any:
        return factor

    def total() -> Callable[[np.ndarray], float]:
        return lambda x: np.sum(scaled(x) ** 2)

    first = parts(total(), X)
    assert parts(total(), X) is first
    factor = 3.0
    assert parts(total(), X) is not first


def test_data_of_closures_are_given_back() -> None:
    data = X + 1.0
    gone = weakref.ref(data)
    parts(misfit(data), X)
    del data
    gc.collect()
    assert gone() is None


def test_the_machine_code_is_the_same() -> None:
    def run(data: np.ndarray) -> Any:
        return grad(lambda x: np.sum((x - data) ** 2), cache=False)

    first, second = run(X), run(X + 1.0)
    np.testing.assert_array_equal(first(2.0 * X), 2.0 * X)
    np.testing.assert_array_equal(second(2.0 * X), 2.0 * (X - 1.0))
    built = [made.__self__._specialise((X,), {}).program.parts.built["joint"] for made in (first, second)]
    assert built[0] is built[1]
    assert len(built[0].signatures) == 1
