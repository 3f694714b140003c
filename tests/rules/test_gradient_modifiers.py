"""Functions in the body that leave values as they are and change derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import MissingRule, NotDifferentiable
from tests.judged import both

X = np.array([1.0, 2.0, -3.0])


def stopped(x: np.ndarray) -> float:
    return (x * tg.stop_gradient(x)).sum()


def scaled(x: np.ndarray) -> float:
    return (tg.scale_gradient(x, 0.5) ** 2).sum()


def clipped(x: np.ndarray) -> float:
    return (tg.clip_gradient(x, -1.0, 3.0) ** 2).sum()


def printed(x: np.ndarray) -> float:
    y = tg.print_gradient(x * x, "y:")
    return (y * x).sum()


def in_a_loop(x: float) -> float:
    t = x
    for _ in range(3):
        t = tg.clip_gradient(t * x, -1.0, 1.0)
        t = tg.scale_gradient(t, 2.0) + tg.stop_gradient(t)
    return t


def square_of_gradient(func: Any, backend: str) -> Any:
    derived = tg.differentiable(func, backend=backend)

    def squared(x: np.ndarray) -> float:
        g = derived.grad(x)
        return (g * g).sum()

    return squared


@both
@pytest.mark.parametrize(
    ("func", "gradient", "second"),
    [
        (stopped, X, np.zeros(3)),
        (scaled, X, X),
        (clipped, np.clip(2.0 * X, -1.0, 3.0), np.array([3.0, 0.0, 0.0])),
        (printed, 3.0 * X * X, 36.0 * X**3),
    ],
)
def test_gradients_and_their_gradients(
    backend: str, func: Any, gradient: np.ndarray, second: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    value, found = tg.value_and_grad(func, backend=backend)(X)
    assert value == func(X)
    np.testing.assert_allclose(found, gradient)
    found = tg.grad(square_of_gradient(func, backend), backend=backend)(X)
    np.testing.assert_allclose(found, second)


@both
def test_forward_mode(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    direction = np.array([1.0, 0.0, 2.0])
    assert tg.jvp(stopped, (X,), (direction,), backend=backend)[1] == X @ direction
    assert tg.jvp(scaled, (X,), (direction,), backend=backend)[1] == X @ direction
    assert tg.jvp(printed, (X,), (direction,), backend=backend)[1] == 3.0 * (X * X) @ direction
    assert capsys.readouterr().out.split("[")[0] == "y: "
    with pytest.raises(MissingRule, match="clip_gradient has no forward derivative"):
        tg.jvp(clipped, (X,), (direction,), backend=backend)


@pytest.mark.parametrize("factor", ["a", None, (1.0, 2.0)])
def test_a_factor_is_a_number(factor: Any) -> None:
    with pytest.raises(TypeError, match="factor of a gradient is a number"):
        tg.scale_gradient(X, factor)
    with pytest.raises(NotDifferentiable, match="factor of a gradient is a number"):
        tg.grad(lambda x: tg.scale_gradient(x, factor), backend="python")(0.9)


@both
def test_numbers_in_loops(backend: str) -> None:
    x = 0.9
    value, gradient = tg.value_and_grad(in_a_loop, backend=backend)(x)
    assert value == in_a_loop(x)
    bar, expected, ts = 1.0, 0.0, [x]
    for _ in range(2):
        ts.append(2.0 * (ts[-1] * x))
    for t in reversed(ts):
        bar = min(max(2.0 * bar, -1.0), 1.0)
        expected += bar * t
        bar *= x
    assert gradient == pytest.approx(expected + bar)


@both
def test_the_cotangent_is_complete_when_it_is_printed(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    def used_twice(x: float) -> float:
        y = tg.print_gradient(x, "both:")
        unused = tg.print_gradient(x, "nobody:")
        if unused > 1e9:
            return 0.0
        return y * y + 3.0 * y

    assert tg.grad(used_twice, backend=backend)(2.0) == 7.0
    assert capsys.readouterr().out == "both: 7.0\n"


def of_a_structure(params: dict[str, Any]) -> float:
    reverse = tg.scale_gradient(params, -1.0)
    w, (b, n) = reverse["w"], reverse["b"]
    w[0] = 5.0  # a copy: the caller's array stays
    return (w * b).sum() * n


@both
def test_structures_are_copied(backend: str) -> None:
    params = {"w": X.copy(), "b": [2.0, 3]}
    value, gradient = tg.value_and_grad(of_a_structure, backend=backend)(params)
    assert value == of_a_structure(params) == 24.0
    np.testing.assert_array_equal(params["w"], X)
    np.testing.assert_array_equal(gradient["w"], [0.0, -6.0, -6.0])
    assert gradient["b"][0] == -12.0


def test_on_a_tape(capsys: pytest.CaptureFixture[str]) -> None:
    for func, expected in ((stopped, X), (scaled, X), (clipped, np.clip(2.0 * X, -1.0, 3.0)), (printed, 3.0 * X * X)):
        x = tg.constant(X)
        with tg.GradientTape() as tape:
            tape.watch(x)
            y = func(x)
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected)
    assert capsys.readouterr().out == "y: [ 1.  2. -3.]\n"
