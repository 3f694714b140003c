"""Differentiable functions called with tensors: one record each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize

import tapegen as tg
from tapegen import nn


@tg.differentiable(backend="python")
def energy(x: Any, k: Any, *, power: float = 2.0) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += k * x[i] ** power
    return total


@tg.differentiable(backend="python")
def pair(given: Any, scale: Any) -> Any:
    a = given["a"]
    return a * scale, {"s": np.sum(a)}


@tg.differentiable(backend="python")
def overwrites(x: Any) -> Any:
    x[0] = 1.0
    return np.sum(x * x)


def test_one_record_and_the_gradient_of_the_function() -> None:
    x, k = tg.Variable([1.0, 2.0, 3.0]), tg.Variable(0.5)
    with tg.GradientTape() as tape:
        y = energy(x * 1.0, k) * 2.0
        assert len(tape._records or ()) == 3
    assert isinstance(y, tg.Tensor)
    dx, dk = tape.gradient(y, [x, k])
    want = energy.with_options(wrt=(0, 1)).grad(x.numpy(), float(k))
    np.testing.assert_array_equal(dx.numpy(), 2.0 * want[0])
    assert dk.numpy() == 2.0 * want[1]


def test_keywords() -> None:
    x, power = tg.Variable([1.0, 2.0]), tg.Variable(3.0)
    with tg.GradientTape() as tape:
        y = energy(x, 1.0, power=power)
    dx, dp = tape.gradient(y, [x, power])
    np.testing.assert_allclose(dx.numpy(), 3.0 * x.numpy() ** 2)
    np.testing.assert_allclose(dp.numpy(), 8.0 * np.log(2.0))


def test_structures() -> None:
    a, scale = tg.Variable([1.0, 2.0]), np.array([3.0, 4.0])
    with tg.GradientTape(persistent=True) as tape:
        first, second = pair({"a": a}, scale)
    assert tape.gradient(first, a).numpy().tolist() == [3.0, 4.0]
    assert tape.gradient(second["s"], a).numpy().tolist() == [1.0, 1.0]
    assert tape.gradient([first, second], a).numpy().tolist() == [4.0, 5.0]


def test_second_and_third_order() -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape() as t3:
        with tg.GradientTape() as t2:
            with tg.GradientTape() as t1:
                y = energy(x, 1.0, power=4.0)
            first = t1.gradient(y, x)
        second = t2.gradient(first, x)
    np.testing.assert_allclose(first.numpy(), [4.0, 32.0])
    np.testing.assert_allclose(second.numpy(), [12.0, 48.0])
    np.testing.assert_allclose(t3.gradient(second, x).numpy(), [24.0, 48.0])


def test_forward_mode() -> None:
    x = tg.constant([1.0, 2.0])
    with tg.ForwardAccumulator(x, np.array([1.0, 0.5])) as acc:
        y = energy(x, 2.0)
    assert acc.jvp(y).numpy() == 2.0 * (2.0 * 1.0 + 4.0 * 0.5)


def test_derivatives_of_tangents() -> None:
    x, direction = tg.Variable([1.0, 2.0]), tg.Variable([1.0, 0.5])
    with tg.ForwardAccumulator(x, [1.0, 1.0]) as outer, tg.GradientTape() as tape:
        with tg.ForwardAccumulator(x, direction) as inner:
            y = energy(x, 1.0, power=3.0)
        along = inner.jvp(y)
    assert along.numpy() == 9.0
    dx, dd = tape.gradient(along, [x, direction])
    assert dx.numpy().tolist() == [6.0, 6.0]
    assert dd.numpy().tolist() == [3.0, 12.0]
    assert outer.jvp(along).numpy() == 12.0


@tg.differentiable(backend="python")
def fills(x: Any, buffer: Any) -> Any:
    for i in range(len(x)):
        buffer[i] = x[i] ** 2
    return np.sum(buffer)


def test_what_is_written_into_an_array_would_leave_the_tape() -> None:
    x, buffer = tg.Variable([2.0, 3.0]), np.zeros(2)
    with tg.GradientTape(), pytest.raises(tg.NotDifferentiable, match="what is written leaves the tape"):
        fills(x, buffer)
    assert buffer.tolist() == [0.0, 0.0]
    assert fills(x, buffer).numpy() == 13.0 and buffer.tolist() == [4.0, 9.0]


def test_without_a_tape() -> None:
    y = energy(tg.constant([1.0, 2.0]), 1.0)
    assert isinstance(y, tg.Tensor) and y.numpy() == 5.0


def test_tensors_are_not_written() -> None:
    x = tg.constant([3.0, 4.0])
    with pytest.raises(tg.NotDifferentiable, match="writes into an argument that is a tensor"):
        overwrites(x)
    with tg.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(tg.NotDifferentiable, match="writes into an argument that is a tensor"):
            overwrites(x)
    assert x.numpy().tolist() == [3.0, 4.0]
    assert overwrites(np.array([3.0, 4.0])) == 17.0


def test_compiled() -> None:
    function = energy.with_options(backend="auto")
    x = tg.Variable([1.0, 2.0, 3.0])
    with tg.GradientTape() as tape:
        y = function(x, 0.5)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), x.numpy())


VARIABLE = tg.Variable([1.0, 2.0])


class Held:
    def __init__(self, x: Any) -> None:
        self.x = x


@tg.differentiable
def captures(x: Any) -> Any:
    return np.sum(x * VARIABLE)


@tg.differentiable
def has_a_default(x: Any, scale: Any = VARIABLE) -> Any:
    return np.sum(x * scale)


@tg.differentiable
def takes_an_object(held: Any) -> Any:
    return np.sum(held.x**2)


@pytest.mark.parametrize(
    ("function", "argument", "says"),
    [
        (captures, np.ones(2), "'VARIABLE' is a tensor from outside of the function"),
        (captures, VARIABLE, "'VARIABLE' is a tensor from outside of the function"),
        (has_a_default, np.ones(2), "'scale' is a tensor, as a default"),
        (takes_an_object, Held(VARIABLE), "'held.x' is a tensor, as a default or in an object"),
    ],
)
def test_tensors_that_are_no_arguments_are_refused(function: Any, argument: Any, says: str) -> None:
    with tg.GradientTape(), pytest.raises(tg.TapegenError, match=says) as caught:
        function(argument)
    assert "Pass it as an argument" in caught.value.advice


LAYER = nn.Dense(2)
MODEL = nn.Sequential([nn.Dense(2), nn.relu])


@tg.differentiable
def calls_a_layer(x: Any) -> Any:
    return np.sum(LAYER(x))


@tg.differentiable
def calls_layers(x: Any) -> Any:
    return np.sum(MODEL(x))


@tg.differentiable
def makes_a_layer(x: Any) -> Any:
    return np.sum(nn.Dense(2)(x))


@tg.differentiable
def makes_a_constant(x: Any) -> Any:
    return np.sum(tg.constant(x) * 2.0)


@tg.differentiable
def makes_a_variable(x: Any) -> Any:
    return np.sum(tg.Variable(x) * 2.0)


@pytest.mark.parametrize(
    ("function", "name", "line"),
    [
        (calls_a_layer, "Dense", "LAYER(x)"),
        (calls_layers, "Sequential", "MODEL(x)"),
        (makes_a_layer, "Dense", "nn.Dense(2)"),
        (makes_a_constant, "constant", "tg.constant(x)"),
        (makes_a_variable, "Variable", "tg.Variable(x)"),
    ],
)
def test_what_belongs_to_tapes_is_refused_in_differentiable_functions(function: Any, name: str, line: str) -> None:
    with pytest.raises(tg.NotDifferentiable, match=f"'{name}' is called here: .* works on arrays") as caught:
        function.grad(np.ones((2, 3)))
    assert caught.value.span is not None and line in caught.value.span.text()
    assert "with a GradientTape instead of decorating it" in caught.value.advice


def test_activations_and_losses_take_arrays_in_differentiable_functions() -> None:
    @tg.differentiable(backend="python")
    def loss(logits: Any) -> Any:
        return np.sum(nn.sparse_softmax_cross_entropy([0, 2], nn.softplus(logits)))

    logits = np.array([[0.3, -1.2, 0.7], [1.5, 0.4, -0.6]])
    tg.check_grads(loss, logits)


def test_named_tuples_of_tensors() -> None:
    class Pair(NamedTuple):
        x: Any
        y: Any

    @tg.differentiable(backend="python")
    def product(pair: Any) -> Any:
        return np.sum(pair.x * pair.y)

    x, y = tg.Variable([1.0, 2.0]), tg.Variable([3.0, 4.0])
    with tg.GradientTape() as tape:
        z = product(Pair(x, y))
    assert [g.numpy().tolist() for g in tape.gradient(z, [x, y])] == [[3.0, 4.0], [1.0, 2.0]]


def test_functions_of_scipy_say_how_they_are_recorded() -> None:
    x = tg.Variable([1.0, 2.0])
    with tg.GradientTape(), pytest.raises(tg.NotDifferentiable, match="'solve' of scipy converts a tensor") as caught:
        scipy.linalg.solve(np.eye(2), x)
    assert caught.value.span is not None and caught.value.span.file == __file__
    assert "decorated with @tg.differentiable" in caught.value.advice

    @tg.differentiable(backend="python")
    def solved(b: Any) -> Any:
        return scipy.linalg.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), b)

    with tg.GradientTape() as tape:
        y = solved(x)
    assert tape.gradient(y, x).numpy().tolist() == [0.5, 0.25]


SOLVERS: dict[str, Any] = {
    "brentq": lambda a: scipy.optimize.brentq(lambda r: r * r - a, 0.0, 5.0),
    "bisect": lambda a: scipy.optimize.bisect(lambda r, a: r * r - a, 0.0, 5.0, args=(a,)),
    "root": lambda a: scipy.optimize.root(lambda r: r * r - a, np.array([1.0])).x,
    "fsolve": lambda a: scipy.optimize.fsolve(lambda r: r * r - a, np.array([1.0])),
    "fixed_point": lambda a: scipy.optimize.fixed_point(lambda r: (r + a / r) / 2.0, np.array([1.0])),
    "minimize": lambda a: scipy.optimize.minimize(lambda r: np.sum((r - a) ** 2), np.array([1.0])).x,
    "solve_ivp": lambda a: scipy.integrate.solve_ivp(lambda t, y: -a * y, (0.0, 1.0), np.array([1.0])).y,
    "quad": lambda a: scipy.integrate.quad(lambda r: a * r, 0.0, 1.0)[0],
}


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_of_scipy_are_refused_with_advice(name: str) -> None:
    a = tg.Variable(2.0)
    with pytest.raises(tg.NotDifferentiable, match=f"'{name}' of scipy converts a tensor") as caught, tg.GradientTape():
        SOLVERS[name](a)
    assert caught.value.span is not None and caught.value.span.file == __file__
    assert "decorated with @tg.differentiable" in caught.value.advice
    with pytest.raises(tg.NotDifferentiable), tg.ForwardAccumulator(a, 1.0):
        SOLVERS[name](a)


def test_solvers_of_scipy_are_recorded_as_one_operation() -> None:
    @tg.differentiable(backend="python")
    def root(a: Any) -> Any:
        return scipy.optimize.brentq(lambda r: r * r - a, 0.0, 5.0)

    a = tg.Variable(4.0)
    with tg.GradientTape() as tape:
        r = root(a)
    np.testing.assert_allclose(tape.gradient(r, a).numpy(), 0.25, rtol=1e-12)


def test_other_errors_of_scipy_pass_through() -> None:
    a = tg.Variable(2.0)

    def singular() -> None:
        with pytest.raises(tg.NotDifferentiable):
            float(a)
        scipy.linalg.inv(np.zeros((2, 2)))

    with pytest.raises(np.linalg.LinAlgError), tg.GradientTape():
        singular()
    with pytest.raises(ValueError, match="different signs"), tg.GradientTape():
        scipy.optimize.brentq(lambda r: r * r + 1.0, 0.0, 5.0)


def test_a_value_without_axes_has_a_second_derivative() -> None:
    @tg.differentiable(backend="python")
    def half(x: Any) -> Any:
        return np.where(x > 0.0, x * x * x, 0.0)

    x = tg.Variable(2.0)
    with tg.GradientTape() as outer:
        with tg.GradientTape() as inner:
            y = half(x)
        g = inner.gradient(y, x)
    assert g.numpy() == 12.0 and outer.gradient(g, x).numpy() == 12.0
