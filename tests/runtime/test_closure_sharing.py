"""Closures that are made anew by each call of the function around them: derived once, and never one for another."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable, grad, partials
from tapegen.rules import registry
from tapegen.runtime import program_cache
from tests.sources import define

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


def shifted(x: np.ndarray) -> Any:
    return np.sum((x - SPEED) ** 2)


class Spring:
    def __init__(self, stiffness: float) -> None:
        self.stiffness = stiffness

    def energy(self, x: np.ndarray) -> Any:
        return 0.5 * self.stiffness * np.sum(x * x)


@pytest.mark.parametrize("kind", ["twice", "loop", "methods"])
def test_functions_outside_of_others_are_compiled_once(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="tapegen")
    text = "import numpy as np\nmade = []\nfor _ in range(3):\n    made.append(lambda x: np.sum(np.sin(x)))\n"
    functions = {
        "twice": [(shifted, 2.0 * (X - 1.0))] * 3,
        "loop": [(func, np.cos(X)) for func in define(text, "made")],
        "methods": [(Spring(stiffness).energy, stiffness * X) for stiffness in (1.0, 2.0, 3.0)],
    }
    for func, expected in functions[kind]:
        np.testing.assert_allclose(grad(func, backend="numba", cache=False)(X), expected, rtol=1e-14)
    assert len([record for record in caplog.records if record.getMessage().startswith("compiled")]) == 1


def programs(function: Any) -> int:
    return len(function._specializer._programs)


SPEED = 1.0


def test_a_float_outside_that_changes_becomes_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = 1.0

    def slowed(x: Any, drag: float = 0.5) -> Any:
        return scale * x - drag * x * x

    function = differentiable(lambda x: np.sum(SPEED * slowed(x)), backend="python")
    for n in range(6):
        monkeypatch.setitem(globals(), "SPEED", 0.5 * n)
        scale = np.float64(n) if n == 4 else n + 0.25
        monkeypatch.setattr(slowed, "__defaults__", (0.1 * n,))
        np.testing.assert_allclose(function.grad(X), 0.5 * n * (scale - 0.2 * n * X), rtol=1e-14)
    assert programs(function) == 3  # all constant, all arguments, and `scale` a number of NumPy
    text = str(function.inspect(X).primal)
    assert "SPEED" in text
    assert "drag" in text


def test_a_float_outside_that_stays_is_a_constant() -> None:
    stiffness, power = 1.0, 2

    def loss(x: Any) -> Any:
        return np.sum(0.5 * stiffness * x**power)

    function = differentiable(loss, backend="python")
    for power in (2, 3):
        np.testing.assert_allclose(function.grad(X), 0.5 * power * X ** (power - 1), rtol=1e-14)
        assert "stiffness" not in str(function.inspect(X).primal)


def test_closures_made_in_a_loop_share_one_program() -> None:
    def penalised(weight: float) -> Any:
        return differentiable(lambda x: np.sum(x * x) * weight, backend="python")

    made = []
    for weight in (0.5, 1.0, 2.0, 0.5):
        function = penalised(weight)
        np.testing.assert_array_equal(function.grad(X), 2.0 * weight * X)
        made.append(function._specialise((X,), {}).program.parts)
    assert made[0] is not made[1]
    assert made[1] is made[2] is made[3]


def test_a_float_that_must_be_known_stays_a_constant() -> None:
    bias: Any = 0.5

    def at(x: Any) -> Any:
        return x[{0.5: 0, 1.5: 1, 2.5: 2}[bias]] ** 2 * bias

    function = differentiable(at, backend="python")
    for k, bias in enumerate((0.5, 1.5, 2.5)):
        np.testing.assert_array_equal(function.grad(X), 2.0 * bias * X * (np.arange(3) == k))
    assert programs(function) == 3


@pytest.mark.parametrize("kind", ["globals", "arguments", "lengths"])
def test_programs_for_constants_that_change_each_time_are_given_up(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache, "MOST_PROGRAMS", 5)
    power = 1

    def loss(x: Any, n: Any = 1) -> Any:
        return x**power if kind == "globals" else x ** len(n) if kind == "lengths" else x * len([0.0][:n])

    function = differentiable(loss, backend="python")
    first = weakref.ref(function._specialise((2.0,), {"n": [1.0]} if kind == "lengths" else {}).program)
    for power in range(1, 20):
        if kind == "globals":
            assert function.grad(2.0) == power * 2.0 ** (power - 1)
        elif kind == "lengths":
            assert function.grad(2.0, [1.0] * power) == power * 2.0 ** (power - 1)
        else:
            assert function.grad(2.0, -power) == 0.0
        assert function.grad(3.0, *([[1.0]] if kind == "lengths" else [1] if kind == "arguments" else [])) == (
            power * 3.0 ** (power - 1) if kind == "globals" else 1.0
        )  # used each time
    gc.collect()
    assert programs(function) <= 5
    assert len(function._specializer._by_key) <= 5
    assert (first() is not None) == (kind != "globals")


def test_methods_of_many_objects_keep_no_more_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache, "MOST_PROGRAMS", 4)

    class Model:
        def __init__(self, degree: int) -> None:
            self.degree = degree

        @differentiable(backend="python")
        def value(self, x: float) -> float:
            return x**self.degree

    for degree in range(1, 12):
        model = Model(degree)
        assert model.value.grad(2.0) == degree * 2.0 ** (degree - 1)
        assert programs(model.value) <= 4
