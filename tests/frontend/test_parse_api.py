"""Callables of every kind through the public door (cases 10 to 14)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import tapegen as tg
from tapegen import differentiable
from tapegen.errors import NotDifferentiable, SourceUnavailable, UnsupportedSyntax


def doubled(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        return func(*args) * 2.0

    return wrapper


def square(x: float) -> float:
    return x * x


def test_a11_decorators_above_the_differentiable_one() -> None:
    outer = doubled(differentiable(square, backend="python"))
    assert outer(3.0) == 18.0
    assert outer.__name__ == "square"
    assert outer.__wrapped__.grad(3.0) == 6.0


def test_a11_stacked_twice() -> None:
    once = differentiable(square, backend="python")
    with pytest.warns(UserWarning, match="is differentiable already"):
        twice = differentiable(once)
    assert twice is once
    assert tg.grad(once)(3.0) == 6.0


class Model:
    def __init__(self, rate: float) -> None:
        self.rate = rate

    def run(self, x: float, power: int = 1) -> float:
        return x * x * self.rate * power

    def __call__(self, x: float) -> float:
        return x * self.rate

    @differentiable(backend="python")
    def own(self, x: float) -> float:
        return x * x * self.rate

    @classmethod
    def build(cls, x: float) -> float:
        return x * x * 5.0

    @staticmethod
    def cube(x: float) -> float:
        return x * x * x


def test_a12_methods_objects_and_partial_application() -> None:
    model = Model(3.0)
    assert differentiable(model.run, backend="python").value_and_grad(2.0) == (12.0, 12.0)
    assert differentiable(model, backend="python").value_and_grad(2.0) == (6.0, 3.0)
    assert model.own.value_and_grad(2.0) == (12.0, 12.0)
    assert differentiable(Model.build, backend="python").grad(2.0) == 20.0
    assert differentiable(Model.cube, backend="python").grad(2.0) == 12.0
    fixed = functools.partial(model.run, power=2)
    assert differentiable(fixed, backend="python").value_and_grad(2.0) == (24.0, 24.0)


def product(a: float, b: float, c: float) -> float:
    return a * b * b * c


def test_a12_positions_count_what_is_left_to_pass() -> None:
    placed = differentiable(functools.partial(product, 2.0), backend="python")
    assert placed.value_and_grad(3.0, 5.0) == (90.0, 60.0)
    assert placed.with_options(wrt=(0, 1)).grad(3.0, 5.0) == (60.0, 18.0)
    assert placed.with_options(wrt="c").grad(3.0, 5.0) == 18.0
    model = Model(3.0)
    assert differentiable(Model.run, backend="python").grad(model, 2.0) == 12.0
    assert differentiable(Model.run, backend="python", wrt="self.rate").grad(model, 2.0) == 4.0


def test_a12_attribute_of_the_bound_object_is_read_at_each_call() -> None:
    model = Model(3.0)
    derived = differentiable(model.run, backend="python")
    assert derived.grad(2.0) == 12.0
    model.rate = 5.0
    assert derived.grad(2.0) == 20.0


@numba.njit
def jitted(x: np.ndarray) -> float:
    total = 0.0
    for i in range(x.size):
        total += math.sin(x[i])
    return total


def test_a12_compiled_functions_are_read_through() -> None:
    x = np.array([0.1, 0.7])
    value, gradient = differentiable(jitted, backend="python").value_and_grad(x)
    np.testing.assert_allclose(value, np.sin(x).sum(), rtol=1e-14)
    np.testing.assert_allclose(gradient, np.cos(x), rtol=1e-14)


def test_a13_not_written_in_python() -> None:
    for func in (np.argmax, math.factorial, len, np.linalg.matrix_rank, dict):
        with pytest.raises(NotDifferentiable):
            differentiable(func)


def test_a14_functions_that_do_not_return_at_once() -> None:
    async def asynchronous(x: float) -> float:
        return x

    async def generating(x: float) -> Any:
        yield x

    for func in (asynchronous, generating):
        for how in ("__call__", "grad", "vjp", "inspect"):
            with pytest.raises(UnsupportedSyntax, match="'async' code"):
                getattr(differentiable(func), how)(1.0)


def test_a04_refused_before_any_number() -> None:
    namespace: dict[str, Any] = {"calls": []}
    exec("def f(x):\n    calls.append(x)\n    return x", namespace)
    for how in ("__call__", "grad", "vjp", "inspect"):
        with pytest.raises(SourceUnavailable, match="there is no source text of 'f'"):
            getattr(differentiable(namespace["f"]), how)(1.0)
    assert namespace["calls"] == []
