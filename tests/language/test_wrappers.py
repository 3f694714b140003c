"""Functions that decorators have put wrappers around with `functools.wraps`: what a call runs is differentiated."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument, NotDifferentiable


def doubled(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs) * 2.0

    return wrapper


def scaled(by: float) -> Callable[..., Any]:
    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapper(x: Any, k: float = 3.0) -> Any:
            return func(x, k) * by

        return wrapper

    return decorate


def arrays(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        args = list(args)
        for i, value in enumerate(args):
            if value is not None:
                args[i] = np.asarray(value)
        for key, value in kwargs.items():
            if value is not None:
                kwargs[key] = np.asarray(value)
        return func(*args, **kwargs)

    return wrapper


@doubled
def power(x: float, n: int = 2) -> float:
    return x**n


@scaled(5.0)
def product(x: float, k: float = 2.0) -> float:
    return x * k


@arrays
def length(v: Any, w: float = 1.0) -> Any:
    return np.sqrt(np.sum(v * v)) * w


class Spring:
    def __init__(self) -> None:
        self.k = 2.0

    @doubled
    def energy(self, x: float) -> float:
        return self.k * x * x

    @scaled(0.5)
    def force(self, x: float) -> float:
        return self.k * x

    def total(self, x: float) -> float:
        return self.energy(x) + power(x, 3) + product(x) + length([x, 2.0 * x], w=x)


@pytest.mark.parametrize("backend", ["python", "auto"])
def test_wrappers_are_run(backend: str) -> None:
    assert tg.value_and_grad(power, backend=backend)(3.0) == (18.0, 12.0)
    assert tg.value_and_grad(power, backend=backend)(3.0, 3) == (54.0, 54.0)
    assert tg.grad(Spring().energy, backend=backend)(3.0) == 24.0


def test_the_wrapper_s_own_defaults_hold() -> None:
    assert product(2.0) == 30.0  # not 20.0, which the wrapped function's default would give
    assert tg.value_and_grad(product, backend="python")(2.0) == (30.0, 15.0)
    assert tg.value_and_grad(lambda x: product(x), backend="python")(2.0) == (30.0, 15.0)
    assert tg.grad(product, wrt="k", backend="python")(2.0, 4.0) == 10.0


def test_arguments_are_named_as_the_wrapper_documents_them() -> None:
    v = np.array([3.0, 4.0])
    by_v, by_w = tg.grad(length, wrt=("v", "w"), backend="python")(v, 2.0)
    np.testing.assert_allclose(by_v, [1.2, 1.6], rtol=1e-15)
    assert by_w == 5.0
    derived = tg.differentiable(wrt=("w", 0), backend="python")(length)
    by_w, by_v = derived.grad(v, w=2.0)
    np.testing.assert_allclose(by_v, [1.2, 1.6], rtol=1e-15)
    assert by_w == 5.0
    assert derived.jvp((v, 2.0), (v, 1.0)) == (10.0, 15.0)
    assert "def length_value_and_grad(" in derived.inspect(v, w=2.0).joint
    with pytest.raises(BadArgument, match="wrt='u' is not an argument of length"):
        tg.grad(length, wrt="u", backend="python")(v, 2.0)
    with pytest.raises(BadArgument, match="wrt=2 is not the position of an argument of length"):
        tg.grad(length, wrt=2, backend="python")(v, 2.0)


def test_wrapped_methods_and_calls() -> None:
    spring = Spring()
    x, h = 1.5, 1e-5
    expected = (spring.total(x + h) - spring.total(x - h)) / (2.0 * h)
    value, slope = tg.value_and_grad(spring.total, backend="python")(x)
    assert value == spring.total(x)
    assert slope == pytest.approx(expected, rel=1e-8)
    assert tg.hessian(spring.energy, backend="python")(x) == 8.0


def test_types_declared_for_numba_are_not_dropped() -> None:
    @numba.njit(locals={"y": numba.float32})
    def rounded(x):
        y = x * 0.1
        return y * 3.0

    with pytest.raises(NotDifferentiable, match=r"'rounded' declares types of local variables to numba \(y: float32\)"):
        tg.grad(rounded, backend="python")(0.7)
    with pytest.raises(NotDifferentiable, match="declares types of local variables"):
        tg.grad(lambda x: rounded(x) * 2.0, backend="python")(0.7)
    assert tg.grad(rounded.py_func, backend="python")(0.7) == pytest.approx(0.3, rel=1e-15)

    @numba.njit(locals={"y": numba.float64, "k": numba.intp})
    def counted(x):
        y = x
        for k in range(3):
            y = y * x + k
        return y

    assert tg.grad(counted, backend="python")(0.5) == pytest.approx(4 * 0.125 + 1.0, rel=1e-15)


def converted(*names: str) -> Callable[..., Any]:
    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            known = inspect.getfullargspec(func)
            args = list(args)
            for i, (name, value) in enumerate(zip(known.args, args)):
                if name in names and value is not None:
                    args[i] = np.array(value)
            return func(*args, **kwargs)

        return wrapper

    return decorate


@converted("a", "b")
def weighted_dot(a: Any, b: Any, c: float = 2.0) -> Any:
    return np.sum(a * b) * c


def test_wrappers_that_ask_for_the_names_of_parameters() -> None:
    by_a, by_c = tg.grad(weighted_dot, wrt=("a", "c"), backend="python")([1.0, 2.0], [3.0, 4.0], 3.0)
    assert by_a == [9.0, 12.0]
    assert by_c == 11.0
