"""Repeated calls with lists, dicts, objects and keywords: fast, and never with the program of another call.

Each case calls one function several times; each call is compared with plain Python and with a function that has not
been called before.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.runtime.inline_cache import InlineCache
from tapegen.runtime.signature_key import signature_key

Pair = namedtuple("Pair", ["first", "second"])
X = np.array([0.5, 1.5])


@dataclass
class Setup:
    rate: float
    steps: int = 2
    weights: Any = field(default_factory=lambda: X)


@dataclass(frozen=True)
class Other:
    rate: float
    steps: int = 2
    weights: Any = None


@dataclass(slots=True)
class Slotted:
    rate: float
    steps: int = 3


class Model:
    scale = 2.0

    def __init__(self, rate: float, name: str = "a") -> None:
        self.rate, self.name = rate, name
        self.inner = {"k": [1.0, 2.0]}
        self.function: Callable[[Any], Any] = np.sin

    @tg.differentiable(backend="numba", wrt="x")
    def energy(self, x: Any, factor: float = 1.0) -> Any:
        shift = len(self.name)
        return self.rate * self.scale * factor * np.sum(self.function(x)) + shift * sum(self.inner["k"])


class Derived(Model):
    scale = 5.0


def total(values: Any) -> Any:
    result = 0.0
    for k, value in enumerate(values):
        result = result + (k + 1.0) * np.sum(value * value)
    return result


def of_numbers(values: Any) -> Any:
    return sum([(k + 1.0) * value * value for k, value in enumerate(values)])


def by_keys(p: Any) -> Any:
    result = 0.0
    for k, key in enumerate(p):
        result = result + (k + 1.0) * p[key] * len(key)
    return result


def of_setup(p: Any) -> Any:
    result = p.rate
    for _ in range(p.steps):
        result = result * p.rate
    return result if getattr(p, "weights", None) is None else result * np.sum(p.weights)


def of_pair(p: Any) -> Any:
    return p.first * 2.0 + p[1] * p.first


def with_keywords(x: Any, y: float = 2.0, *, how: str = "sum") -> Any:
    return y * (np.sum(x) if how == "sum" else np.max(x))


def collected(x: Any, *rest: Any, **options: Any) -> Any:
    return np.sum(x) * sum(rest) * options.get("scale", 1.0)


LISTS = [
    ([1.0, 2.0],),
    ([3.0, 4.0],),
    ([3.0, 4.0, 5.0],),
    ([3.0, np.float64(4.0)],),
    ([3.0, 4],),
    ([3.0, True],),
    ([3.0, X],),
    ([3.0, X[:1]],),
    ([3.0, np.ones((2, 2))],),
    ((3.0, 4.0),),
    ([[3.0, 4.0][0], 4.0],),
    ([np.float32(3.0), 4.0],),
]
DICTS = [
    ({"a": 1.0, "bb": 2.0},),
    ({"a": 3.0, "bb": 4.0},),
    ({"bb": 2.0, "a": 1.0},),
    ({"a": 1.0, "b": 2.0},),
    ({"a": 1, "bb": 2.0},),
]
SETUPS = [
    (Setup(1.5),),
    (Setup(2.5),),
    (Setup(2.5, 3),),
    (Setup(2.5, 3, None),),
    (Setup(2.5, 3, 2.0),),
    (Other(1.5, 2, X),),
    (Slotted(1.5),),
    (Slotted(1.5, 4),),
]
PAIRS = [(Pair(1.0, 2.0),), (Pair(2.0, 3.0),), (Pair(2.0, X[0]),)]


@pytest.mark.parametrize(
    ("function", "calls"),
    [(total, LISTS), (by_keys, DICTS), (of_setup, SETUPS), (of_pair, PAIRS)],
    ids=lambda v: str(v)[:20],
)
def test_each_call_has_its_own_program(function: Any, calls: list[tuple[Any, ...]]) -> None:
    derived = tg.differentiable(function, backend="python")
    for args in [*calls, *reversed(calls), *calls]:
        value, gradient = derived.value_and_grad(*args)
        assert value == function(*args)
        expected = tg.grad(function, backend="python")(*args)
        assert repr(gradient) == repr(expected)


def answered(run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a call is answered by compiled code without another look at the program."""
    found: list[bool] = []
    lookup = InlineCache.lookup

    def noted(self: InlineCache, *given: Any) -> Any:
        found.append((answer := lookup(self, *given)) is not None)
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(InlineCache, "lookup", noted)
        run()
    return found == [True]


def test_structures_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lists, dicts = tg.differentiable(of_numbers, backend="numba"), tg.differentiable(by_keys, backend="numba")
    lists.grad([1.0, 2.0])
    dicts.grad({"a": 1.0, "bb": 2.0})
    assert answered(lambda: lists.grad([2.0, 3.0]), monkeypatch)
    assert not answered(lambda: lists.grad([2.0, 3.0, 4.0]), monkeypatch)
    assert answered(lambda: dicts.grad({"a": 2.0, "bb": 3.0}), monkeypatch)
    named = tg.differentiable(with_keywords, backend="numba")
    named.grad(X, 3.0)
    assert not answered(lambda: named.grad(X, how="max"), monkeypatch)  # a keyword that has no position
    collecting = tg.differentiable(collected, backend="numba")
    collecting.grad(X, 2.0, 3.0)
    assert answered(lambda: collecting.grad(X, 2.0, 4.0), monkeypatch)
    assert collecting.grad(X, 2.0, 4.0, scale=2.0).tolist() == [12.0, 12.0]
    assert collecting.grad(X, 2.0, 4.0).tolist() == [6.0, 6.0]


def test_methods_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, other = Model(1.5), Model(2.5)
    model.energy.value_and_grad(X)

    def agrees(model: Model, *args: Any, **kwargs: Any) -> bool:
        plain = Model.energy.python
        at_once = answered(lambda: model.energy.value_and_grad(*args, **kwargs), monkeypatch)
        value, gradient = model.energy.value_and_grad(*args, **kwargs)
        fresh = tg.value_and_grad(functools.partial(plain, model), backend="python")(*args, **kwargs)
        np.testing.assert_allclose(value, fresh[0], rtol=1e-14)
        np.testing.assert_allclose(gradient, fresh[1], rtol=1e-14)
        return at_once

    assert agrees(model, X)
    assert agrees(other, X)
    assert agrees(other, x=X)
    assert agrees(other, X, factor=1.0)
    other.rate = 3.5
    assert agrees(other, X)
    other.name = "longer"
    assert not agrees(other, X)
    other.inner["k"] = [1.0, 2.0, 3.0]
    assert not agrees(other, X)
    other.inner["k"][0] = 7.0
    assert agrees(other, X)
    other.function = np.cos
    assert not agrees(other, X)
    other.added = {1, 2}  # type: ignore[attr-defined]
    assert not agrees(other, X)
    assert not agrees(Derived(1.5), X)
    assert agrees(Derived(2.5), X)
    assert agrees(model, X)
    monkeypatch.setattr(Model, "scale", 4.0)
    assert not agrees(model, X)
    model.scale = 6.0
    assert not agrees(model, X)
    value, (by_self, by_x) = tg.value_and_grad(Model.energy.python, wrt=("self.rate", "x"), backend="python")(model, X)
    assert value == pytest.approx(model.energy(X))
    np.testing.assert_allclose(by_x, model.energy.grad(X))
    assert by_self == pytest.approx((value - 3.0) / model.rate)


def test_objects_that_store_are_called_as_before() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0
            self.last = 0.0

        @tg.differentiable(backend="numba", wrt="x")
        def squared(self, x: float) -> float:
            self.count += 1
            self.last = x
            return x * x + self.count

    counter = Counter()
    for k in range(1, 5):
        assert counter.squared.value_and_grad(float(k)) == (k * k + k, 2.0 * k)
        assert (counter.count, counter.last) == (k, float(k))


def test_what_a_key_does_not_describe() -> None:
    """Sets, classes with slots, keys that are no strings, and structures without end have no key."""
    endless: list[Any] = []
    endless.append(endless)
    for value in ({1.0}, Slotted(1.0), {1: 1.0}, endless, [[[0.0]] * 5000] * 5000, np.ma.array([1.0]), object()):
        assert signature_key([value]) is None
    assert signature_key([[1.0]]) != signature_key([(1.0,)]) != signature_key([{"a": 1.0}])
    assert signature_key([[1.0], 2.0]) != signature_key([[1.0, 2.0]])
    assert signature_key([Setup(1.0)]) != signature_key([Other(1.0, 2, X)])
    assert signature_key([True]) != signature_key([1])
