"""Jacobians and derivatives of derivatives of complex numbers, against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument
from tests.judged import both

X = np.array([0.3, 0.8])
Z = np.array([1 + 2j, 0.5 - 1j])
H = 1e-6


def wave(x: Any) -> Any:
    return np.exp(1j * x) * x[0]


def power(z: Any) -> Any:
    return np.abs(z) ** 2 * z[0].real


def squares(z: Any) -> Any:
    return z**2 * np.sum(z)


def conjugated(z: Any) -> Any:
    return np.conj(z) * z[0]


def columns(function: Any, at: Any, unit: complex = 1.0) -> np.ndarray:
    steps = [H * unit * axis for axis in np.eye(at.size)]
    return np.stack([(function(at + step) - function(at - step)) / (2 * H) for step in steps], -1)


@both
def test_jacobians_are_made_in_the_mode_that_says_all(backend: str) -> None:
    options: Any = {"backend": backend}
    np.testing.assert_allclose(tg.jacobian(wave, **options)(X), columns(wave, X), atol=1e-8)
    expected = columns(power, Z) - 1j * columns(power, Z, 1j)
    np.testing.assert_allclose(tg.jacobian(power, **options)(Z), expected, atol=1e-8)
    for mode in ("forward", "reverse"):
        found = tg.jacobian(squares, mode=mode, holomorphic=True, **options)(Z)
        np.testing.assert_allclose(found, columns(squares, Z), atol=1e-8)
    assert tg.jacobian(lambda z: abs(z) ** 2, **options)(3 + 4j) == pytest.approx(6 - 8j)
    assert tg.jacobian(lambda x: np.exp(1j * x), **options)(0.0) == 1j


def test_jacobians_that_one_number_each_does_not_hold_are_refused() -> None:
    options: Any = {"backend": "python"}
    for function, at, mode in ((wave, X, "reverse"), (power, Z, "forward")):
        with pytest.raises(BadArgument, match=f"cannot be computed in mode '{mode}'") as caught:
            tg.jacobian(function, mode=mode, **options)(at)
        assert caught.value.span is not None
    for mode in (None, "forward", "reverse"):
        with pytest.raises(BadArgument, match="for holomorphic functions only"):
            tg.jacobian(conjugated, mode=mode, **options)(Z)
    with pytest.raises(BadArgument, match="holomorphic=True is for complex arguments and results"):
        tg.jacobian(wave, holomorphic=True, **options)(X)
    with pytest.raises(BadArgument, match="for holomorphic functions only"):
        tg.hessian(lambda z: np.sum(np.abs(z) ** 4), **options)(Z)


def of_waves(x: Any) -> Any:
    return np.sum(np.abs(tg.jacobian(wave)(x)) ** 2)


def of_powers(z: Any) -> Any:
    return np.sum(np.abs(tg.jacobian(power)(z)) ** 2)


def of_squares(z: Any) -> Any:
    return np.sum(np.abs(tg.jacobian(squares, holomorphic=True)(z)) ** 2)


def of_gradients(z: Any) -> Any:
    return np.sum(np.abs(tg.grad(lambda w: np.abs(w[0]) ** 4 + (w[1] * w[0]).real)(z)))


def of_tangents(x: Any) -> Any:
    return np.sum(tg.jvp(wave, (x,), (x,))[1].real)


def of_cotangents(z: Any) -> Any:
    return np.sum(tg.vjp(squares, z)[1](z).real)


INSIDE = [(of_waves, X), (of_powers, Z), (of_squares, Z), (of_gradients, Z), (of_tangents, X), (of_cotangents, Z)]


@both
@pytest.mark.parametrize(("function", "at"), INSIDE, ids=lambda part: getattr(part, "__name__", ""))
def test_derivatives_inside_functions(function: Any, at: Any, backend: str) -> None:
    tg.check_grads(function, at, modes=("forward", "reverse"), backend=backend)


def test_gradients_of_complex_results_are_refused_inside_functions() -> None:
    def outer(z: Any) -> Any:
        return tg.grad(lambda w: w[0] ** 2)(z)[0].real

    with pytest.raises(BadArgument, match="returns a complex number, which has no gradient") as caught:
        tg.grad(outer, backend="python")(Z)
    assert caught.value.span is not None and "tg.grad(lambda" in caught.value.span.text()


@both
def test_products_with_hessians(backend: str) -> None:
    def loss(z: Any) -> Any:
        return np.sum(np.abs(z) ** 4) + (z[0] * z[1]).imag

    direction = np.array([0.3 - 1j, 2.0 + 0.5j])
    gradient = tg.grad(loss, backend=backend)
    expected = (gradient(Z + H * direction) - gradient(Z - H * direction)) / (2 * H)
    np.testing.assert_allclose(tg.hvp(loss, (Z,), (direction,), backend=backend), expected, rtol=1e-7)


def test_hessians_of_real_arguments() -> None:
    def loss(x: Any) -> Any:
        return np.sum(np.abs(np.exp(1j * x) * x + 1j) ** 4)

    gradient = tg.grad(loss, backend="python")
    np.testing.assert_allclose(tg.hessian(loss, backend="python")(X), columns(gradient, X), rtol=1e-6)
