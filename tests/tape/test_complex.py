"""Complex tensors: gradients against differences by both parts, in both modes and to second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
import tapegen.tf as tf

Z = np.array([3.0 + 4.0j, -1.5 + 0.3j, 0.2 - 2.0j])
WEIGHTS = np.array([1.0, 2.0j, 3.0 - 1.0j])

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "square": lambda z: np.sum(z * np.conj(z)).real,
    "size": lambda z: np.sum(np.abs(z) ** 3),
    "parts": lambda z: np.sum(z.real**2 * z.imag),
    "exponential": lambda z: np.sum(np.real(np.exp(z) * z)),
    "angle": lambda z: np.sum(np.angle(z)),
    "quotient": lambda z: np.sum((1.0 / z).real + (z / (1.0 + z)).imag),
    "powers": lambda z: np.sum((z**2.5).real + (z**3).imag),
    "elements": lambda z: (z[0] * z[1:]).real.sum() + abs(z[[0, 0, 2]]).sum(),
    "spectrum": lambda z: np.sum(np.abs(np.fft.fft(z)) ** 2 * np.arange(3.0)),
    "products": lambda z: np.sum(np.abs(np.outer(z, z) @ z) ** 2) * 1e-3,
    "solve": lambda z: np.sum(np.abs(np.linalg.solve(np.outer(z, np.conj(z)) + np.eye(3) * 2.0, z)) ** 2),
    "branches": lambda z: np.sum(np.log(z).imag + np.sqrt(z).real),
    "joined": lambda z: np.sum(np.abs(np.concatenate([z, z * 2.0, [1.0, 2.0]]))),
    "chosen": lambda z: np.sum(np.where(z.real > 0.0, z, z * z).real),
    "converted": lambda z: np.sum((z.real.astype(complex) * z).imag),
    "reduced": lambda z: np.prod(z).real + np.mean(z).real ** 2 + np.var(z) + np.linalg.norm(z),
    "where": lambda z: np.sum(z, where=[True, False, True]).real,
}


def gradient(function: Callable[[Any], Any], at: np.ndarray) -> np.ndarray:
    z = tg.constant(at)
    with tg.GradientTape() as tape:
        tape.watch(z)
        y = function(z)
    found: np.ndarray = tape.gradient(y, z).numpy()
    return found


def differences(function: Callable[[Any], Any], at: np.ndarray) -> np.ndarray:
    """`du/dx - i du/dy` of each element."""
    step = 1e-6
    slopes = [
        [(function(at + step * turn * unit) - function(at - step * turn * unit)) / (2 * step) for turn in (1.0, 1.0j)]
        for unit in np.eye(at.size)
    ]
    return np.array([along - 1j * across for along, across in slopes])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_by_complex_tensors(name: str) -> None:
    function = FUNCTIONS[name]
    want = differences(function, Z)
    np.testing.assert_allclose(gradient(function, Z), want, rtol=1e-6, atol=1e-6)
    z = tg.constant(Z)
    with tg.ForwardAccumulator(z, WEIGHTS) as accumulator:
        y = function(z)
    np.testing.assert_allclose(accumulator.jvp(y), np.sum(want * WEIGHTS).real, rtol=1e-6)
    with tg.GradientTape() as outer:
        outer.watch(z)
        with tg.GradientTape() as inner:
            inner.watch(z)
            y = function(z)
        projected = np.sum((inner.gradient(y, z) * WEIGHTS).real)
    second = differences(lambda at: np.sum((gradient(function, at) * WEIGHTS).real), Z)
    np.testing.assert_allclose(outer.gradient(projected, z), second, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_by_real_tensors_are_real(name: str) -> None:
    function = FUNCTIONS[name]
    x = tg.Variable([1.0, 2.0, -0.5])
    with tg.GradientTape() as tape:
        y = function(x * (1.0 + 0.5j) + 0.3j)
    found = tape.gradient(y, x)
    assert found.dtype == np.float64
    by_z = differences(function, x.numpy() * (1.0 + 0.5j) + 0.3j)
    np.testing.assert_allclose(found, (by_z * (1.0 + 0.5j)).real, rtol=1e-6, atol=1e-6)


def test_section_12_conventions() -> None:
    z = tg.constant(3.0 + 4.0j)
    with tg.GradientTape(persistent=True) as tape, tg.GradientTape(persistent=True, conjugate=True) as turned:
        tape.watch(z), turned.watch(z)
        square = z * z
        size = z * np.conj(z)
    assert tape.gradient(square, z).numpy() == 6.0 + 8.0j
    assert turned.gradient(square, z).numpy() == 6.0 - 8.0j
    assert tape.gradient(size, z).numpy() == 6.0 - 8.0j
    assert turned.gradient(size, z).numpy() == 6.0 + 8.0j
    assert tape.gradient(square, z, output_gradients=1j).numpy() == -8.0 + 6.0j
    assert turned.gradient(square, z, output_gradients=-1j).numpy() == np.conj(-8.0 + 6.0j)
    assert tape.jacobian(square, z).numpy() == np.conj(turned.jacobian(square, z).numpy()) == 6.0 + 8.0j
    z = tf.constant(3.0 + 4.0j)
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = z * z
    assert tape.gradient(y, z).numpy() == 6.0 - 8.0j


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda z: np.sort(z).real, "sort"),
        (lambda z: np.round(z).real, "round"),
        (lambda z: np.sign(z).real, "sign"),
        (lambda z: np.abs(np.sort_complex(z)), "sort_complex"),
        (lambda z: np.median(z).real, "median"),
    ],
)
def test_what_has_rules_for_real_numbers_only(function: Callable[[Any], Any], name: str) -> None:
    z = tg.Variable(Z)
    with tg.GradientTape() as tape:
        y = function(z)
    with pytest.raises(tg.MissingRule, match=f"no entry for: {name} ") as caught:
        tape.gradient(y, z)
    assert caught.value.span is not None and caught.value.span.file == __file__
