"""Decorated methods of classes: every kind of method, from outside and inside other functions, and what they share."""

from __future__ import annotations

import enum
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen import check_grads, differentiable
from tapegen.errors import NotDifferentiable

X = np.array([1.0, 2.0, 3.0])


class Model:
    factor = 2.0

    def __init__(self, k: float) -> None:
        self.k = k

    @differentiable(backend="python")
    def loss(self, x: Any) -> Any:
        return self.k * np.sum(x**2)

    @differentiable(backend="python")
    @staticmethod
    def cubes(x: Any) -> Any:
        return np.sum(x**3)

    @staticmethod
    @differentiable(backend="python")
    def squares(x: Any) -> Any:
        return np.sum(x**2)

    @differentiable(backend="python")
    @classmethod
    def scaled(cls, x: Any) -> Any:
        return cls.factor * np.sum(x)

    @classmethod
    @differentiable(backend="python")
    def halved(cls, x: Any) -> Any:
        return np.sum(x) / cls.factor

    @differentiable(backend="python")
    @property
    def doubled(self) -> Any:
        return 2.0 * self.k

    @differentiable(backend="python")
    def __call__(self, x: Any) -> Any:
        return self.loss(x) * self.k

    def all_of_it(self, x: Any) -> Any:
        return self.loss(x) + self.cubes(x) * self.scaled(x) + self.squares(x) / self.halved(x) + self.doubled * x[0]


class Child(Model):
    factor = 5.0

    def __init__(self, k: float) -> None:
        super().__init__(k * 1.5)
        self.shift = k

    @differentiable(backend="python")
    def loss(self, x: Any) -> Any:
        return super().loss(x) * self.shift + super().scaled(x)

    @classmethod
    def halved(cls, x: Any) -> Any:
        return super().halved(x) * x[0]

    @property
    def doubled(self) -> Any:
        return super(Child, self).doubled + 1.0  # noqa: UP008  (this form is tested)


class Plain:
    def __init__(self) -> None:
        super().__init__()
        self.seen = 1.0


def test_every_kind_of_method_has_derivatives() -> None:
    model = Model(2.0)
    for found, want in [
        (model.loss.grad(X), 4.0 * X),
        (model.cubes.grad(X), 3.0 * X**2),
        (Model.cubes.grad(X), 3.0 * X**2),
        (model.squares.grad(X), 2.0 * X),
        (model.scaled.grad(X), np.full(3, 2.0)),
        (Child.scaled.grad(X), np.full(3, 5.0)),
        (Model.loss.grad(model, X), 4.0 * X),
    ]:
        np.testing.assert_array_equal(found, want)
    assert model.halved(X) == 3.0
    if sys.version_info < (3, 13):  # then `classmethod` binds no decorated function to the class any more
        np.testing.assert_array_equal(model.halved.grad(X), np.full(3, 0.5))
    assert model.doubled == 4.0
    assert "x_bar" in model.loss.backward_source


def of_argument(x: Any, model: Any) -> Any:
    return model.all_of_it(x) * model(x)


SHARED = Child(1.7)


def of_global(x: Any) -> Any:
    return SHARED.loss(x) + Model.cubes(x) + Child.scaled(x) + SHARED.doubled * x[1]


def made_inside(x: Any) -> Any:
    model = Child(x[0])
    plain = Plain()
    return model.all_of_it(x) * plain.seen + model.k


def slopes(x: Any, model: Any) -> Any:
    value, slope = model.loss.value_and_grad(x)
    tangent = model.loss.jvp((x,), (slope,))[1]
    return value + np.sum(slope**2) + tangent + np.sum(model.cubes.grad(x)) + np.sum(tg.grad(model.scaled)(x) * x)


@pytest.mark.parametrize("model", [Model(2.0), Child(0.7)], ids=["base", "child"])
@pytest.mark.parametrize("function", [of_argument, slopes], ids=["calls", "derivatives"])
def test_methods_inside_other_functions(function: Callable[..., Any], model: Model) -> None:
    taken = functools.partial(function, model=model)
    np.testing.assert_allclose(differentiable(backend="python")(function)(X, model), function(X, model))
    check_grads(taken, X, backend="python")


@pytest.mark.parametrize("function", [of_global, made_inside])
def test_methods_of_globals_and_of_objects_made_inside(function: Callable[..., Any]) -> None:
    value, _ = tg.value_and_grad(function, backend="python")(X)
    assert value == function(X)
    check_grads(function, X, backend="python")


def test_objects_of_a_class_share_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    Model(3.0).loss.grad(X)
    monkeypatch.setattr("tapegen.runtime.specialization.lower_function", None)  # nothing is lowered again
    np.testing.assert_array_equal(Model(5.0).loss.grad(X), 10.0 * X)


def test_super_outside_of_a_method() -> None:
    def f(x: Any) -> Any:
        return super().loss(x)  # type: ignore[misc]

    with pytest.raises(NotDifferentiable, match="'super' is not that of a method"):
        tg.grad(f, backend="python")(X)


class Order(enum.IntEnum):
    LINEAR = 1
    QUADRATIC = 2


class Rate(float, enum.Enum):
    SLOW = 0.5
    FAST = 2.0


@dataclass
class Scheme:
    order: Order
    rate: Rate


def polynomial(x: Any, scheme: Scheme) -> Any:
    total = x[scheme.order] * scheme.rate + x[0] ** (scheme.order + 1)
    for k in range(scheme.order):
        total += np.sum(x) ** Order.QUADRATIC * scheme.rate.value / (k + Order.LINEAR)
    return total * -Rate.FAST if scheme.order > Order.LINEAR else total


@pytest.mark.parametrize("backend", ["python", "numba"])
@pytest.mark.parametrize("scheme", [Scheme(Order.LINEAR, Rate.SLOW), Scheme(Order.QUADRATIC, Rate.FAST)])
def test_members_of_enumerations_of_numbers(scheme: Scheme, backend: str) -> None:
    value, _ = tg.value_and_grad(polynomial, backend=backend)(X, scheme)
    np.testing.assert_allclose(value, polynomial(X, scheme), rtol=1e-15)
    check_grads(functools.partial(polynomial, scheme=scheme), X, backend=backend)


class Named:
    def __init__(self, k: float) -> None:
        self.k = k

    def energy(self, x: float) -> float:
        if self.__class__.__name__ != "Named" or self.__class__ is not Named:
            raise ValueError(f"{self.__class__.__name__} is something else")
        return self.k * x * x


def test_an_object_says_its_class() -> None:
    assert tg.grad(Named(3.0).energy, backend="python")(2.0) == 12.0
    assert tg.grad(lambda x: Named(x).energy(2.0), backend="python")(3.0) == 4.0
