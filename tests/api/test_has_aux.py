"""Functions that return an objective and something else (`has_aux`), in every derivative; what `linearize` holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument
from tests.judged import both

X, V = np.array([0.3, -0.2, 0.5]), np.array([1.0, -2.0, 0.5])
python = {"backend": "python"}


def energy(x: np.ndarray, k: float) -> Any:
    return np.sum(x**3) * k, {"scaled": x * k, "name": "energy", "count": 3}


def curve(x: np.ndarray) -> Any:
    return {"square": x * x}, (np.sum(x), "curve")


@both
def test_every_derivative_gives_what_else_there_is(backend: str) -> None:
    value, pullback, aux = tg.vjp(energy, X, 2.0, has_aux=True, backend=backend)
    np.testing.assert_allclose(pullback(2.0), 12.0 * X**2)
    assert value == energy(X, 2.0)[0]
    assert aux["name"] == "energy"
    assert aux["count"] == 3
    np.testing.assert_allclose(aux["scaled"], 2.0 * X)
    _, tangent, aux = tg.jvp(energy, (X, 2.0), (V, 1.0), has_aux=True, backend=backend)
    assert tangent == pytest.approx(6.0 * np.sum(X**2 * V) + np.sum(X**3))
    np.testing.assert_allclose(aux["scaled"], 2.0 * X)
    product, aux = tg.hvp(energy, (X, 2.0), (V, None), has_aux=True, backend=backend)
    np.testing.assert_allclose(product, 12.0 * X * V)
    np.testing.assert_allclose(aux["scaled"], 2.0 * X)
    _, linear, aux = tg.linearize(energy, X, 2.0, has_aux=True, backend=backend)
    assert linear(V, 1.0) == tangent
    np.testing.assert_allclose(aux["scaled"], 2.0 * X)


@pytest.mark.parametrize(("mode", "backend"), [("forward", "numba"), ("reverse", "python"), (None, "python")])
def test_jacobians(mode: Any, backend: str) -> None:
    found, (total, name) = tg.jacobian(curve, mode=mode, has_aux=True, backend=backend)(X)
    np.testing.assert_allclose(found["square"], np.diag(2.0 * X))
    assert (total, name) == (np.sum(X), "curve")


def test_hessians() -> None:
    hessian, aux = tg.hessian(energy, has_aux=True, **python)(X, 2.0)
    np.testing.assert_allclose(hessian, np.diag(12.0 * X))
    np.testing.assert_allclose(aux["scaled"], 2.0 * X)


def test_an_option_of_the_function_counts() -> None:
    decorated = tg.differentiable(energy, has_aux=True, **python)
    np.testing.assert_allclose(tg.hessian(decorated)(X, 2.0)[0], np.diag(12.0 * X))
    np.testing.assert_allclose(tg.hvp(decorated, (X, 2.0), (V, None))[0], 12.0 * X * V)
    assert len(tg.linearize(decorated, X, 2.0)) == len(decorated.vjp(X, 2.0)) == 3
    assert len(decorated.jvp((X, 2.0), (V, None))) == 3
    tg.check_grads(decorated, X, 2.0, order=2, modes=("forward", "reverse"))


def by_pullback(x: np.ndarray) -> float:
    value, pullback, aux = tg.vjp(energy, x, 2.0, has_aux=True)
    return value + np.sum(pullback(1.0)) + np.sum(aux["scaled"])


def by_tangent(x: np.ndarray) -> float:
    value, tangent, aux = tg.jvp(energy, (x, 2.0), (x, None), has_aux=True)
    return value + tangent + np.sum(aux["scaled"])


def by_jacobian(x: np.ndarray) -> float:
    found, (total, _) = tg.jacobian(curve, has_aux=True)(x)
    return np.sum(found["square"] ** 2) + total


def by_hessian(x: np.ndarray) -> float:
    hessian, _ = tg.hessian(energy, has_aux=True)(x, 2.0)
    product, aux = tg.hvp(energy, (x, 2.0), (x, None), has_aux=True)
    return np.sum(hessian**2) + np.sum(product) + np.sum(aux["scaled"])


def by_linear(x: np.ndarray) -> float:
    total = 0.0
    for k in (1.0, 2.0):
        value, linear, aux = tg.linearize(energy, x, k, has_aux=True)
        total = total + value + linear(x, None) + linear(None, 1.0) + np.sum(aux["scaled"])
    return total


INSIDE = [
    (by_pullback, 6.0 * X**2 + 12.0 * X + 2.0),
    (by_tangent, 24.0 * X**2 + 2.0),
    (by_jacobian, 8.0 * X + 1.0),
    (by_hessian, 288.0 * X + 24.0 * X + 2.0),
    (by_linear, 3.0 * (3.0 * X**2 + 9.0 * X**2 + 1.0) + 6.0 * X**2),
]


@pytest.mark.parametrize(("function", "expected"), INSIDE, ids=[function.__name__ for function, _ in INSIDE])
def test_inside_a_differentiated_function(function: Callable, expected: np.ndarray) -> None:
    np.testing.assert_allclose(tg.grad(function, **python)(X), expected, rtol=1e-12)


@pytest.mark.parametrize(("function", "expected"), [INSIDE[0], INSIDE[-1]], ids=["pullback", "linear"])
def test_compiled_inside(function: Callable, expected: np.ndarray) -> None:
    np.testing.assert_allclose(tg.grad(function, backend="numba")(X), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tg.vjp(lambda x: x * x, X, has_aux=True, **python),
        lambda: tg.jvp(lambda x: x * x, (X,), (V,), has_aux=True, **python),
        lambda: tg.jacobian(lambda x: (x, x, x), has_aux=True, **python)(X),
        lambda: tg.linearize(lambda x: x * x, X, has_aux=True, **python),
        lambda: tg.grad(lambda x: tg.jvp(lambda z: z * z, (x,), (x,), has_aux=True)[0], **python)(2.0),
    ],
)
def test_a_function_that_returns_no_pair_is_refused(call: Callable) -> None:
    with pytest.raises(BadArgument, match="objective, aux"):
        call()


# ---- linearize -------------------------------------------------------------------------------------------------------


@both
def test_linearize_holds_what_the_function_reads(backend: str) -> None:
    weights = np.array([1.0, 2.0, 3.0])

    def around(k: float) -> Callable:
        return tg.linearize(lambda x: x * x * weights * k, X, backend=backend)[1]

    first, second = around(1.0), around(3.0)
    weights[:] = 0.0
    expected = 2.0 * X * V * np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(first(V), expected)
    np.testing.assert_allclose(second(V), 3.0 * expected)
    np.testing.assert_allclose(first(V), expected)


def test_linearize_of_a_function_that_writes() -> None:
    def f(x: np.ndarray) -> float:
        x[0] = x[0] * x[1]
        return np.sum(x * x)

    x = X.copy()
    _, linear = tg.linearize(f, x, **python)
    assert x[0] == X[0] * X[1]
    expected = 2.0 * x[0] * (X[0] * V[1] + X[1] * V[0]) + 2.0 * np.sum(X[1:] * V[1:])
    assert linear(V) == pytest.approx(expected)
    assert linear(V) == pytest.approx(expected)


def test_linearize_inside_holds_what_changes_and_draws_what_was_drawn() -> None:
    def f(x: np.ndarray, rng: np.random.Generator) -> float:
        buffer = x * 1.0
        _, linear = tg.linearize(lambda z, n, r: z * z * buffer * n[0] * r.normal(), buffer, np.array([3]), rng)
        buffer[:] = 0.0
        return np.sum(linear(np.ones(3), None, None)) + rng.normal()

    rng = np.random.default_rng(5)
    found = tg.grad(f, **python)(X, rng)
    again = np.random.default_rng(5)
    np.testing.assert_allclose(found, 12.0 * X * again.normal())
    again.normal()
    assert rng.random() == again.random()


def test_linear_functions_inside_say_what_is_wrong() -> None:
    def wrong(*tangents: Any) -> Callable:
        def f(x: np.ndarray) -> float:
            return tg.linearize(lambda z, n: np.sum(z * n), x, 3)[1](*tangents)

        return tg.grad(f, **python)

    for tangents, message in [((V,), "1 tangents"), ((None, None), "all tangents"), ((V, 1.0), "argument 1")]:
        with pytest.raises(BadArgument, match=message):
            wrong(*tangents)(X)
