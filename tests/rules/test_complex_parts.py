"""Stores into the real and imaginary parts of complex arrays, which are views, against differences in both parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import TapegenError
from tests.judged import both

RNG = np.random.default_rng(7)
Z = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
X = RNG.normal(size=(3, 4))
WEIGHTS = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))

Function = Callable[[np.ndarray, np.ndarray], Any]


# ---- programs: each changes `z` and reads it afterwards --------------------------------------------------------------


def element(z, x):
    for i in range(3):
        z.real[i, 0] = x[i, 0] * z.imag[i, 1]
        z[i].imag[2] = z.real[i, 0] ** 2
    return z


def part_of_a_slice(z, x):
    z.real[1:, ::2] = x[1:, ::2] * x[:-1, ::2]
    z[:, 1].imag[:] = 2.0
    return z


def whole_part(z, x):
    z.real = x * z.imag
    z.imag = 3.0
    return z * x


def added(z, x):
    z.real += x * x
    z.imag[0] -= x[1] * z.real[0]
    z.imag *= z.real
    z[1:].real /= 2.0 + x[1:] ** 2
    return z


def masked(z, x):
    z.imag[x > 0.3] = 0.0
    z.real[x < 0.0] *= x[x < 0.0]
    return z


def gathered(z, x):
    rows = np.array([2, 0, 2])
    z.real[rows] += x
    np.add.at(z.imag, rows, x)
    z.imag[rows, 1] = x[:, 0]
    return z


def by_name(z, x):
    part = z.real
    part[1:] *= 2
    z[0] = x[0]
    other = part[0]
    other[1] = x[0, 1] * part[2, 2]
    return z * part.sum() + other[0]


def overlapping(z, x):
    z.real[1:] = z.real[:-1]
    z.real[:, 1:] += z.imag[:, :-1]
    z.imag[:] = z.real[::-1] * x
    return z


def turned(z, x):
    z.real.T[0] = x[:, 1] ** 2
    z.imag.reshape(-1)[1:5] = x.ravel()[2:6]
    np.swapaxes(z, 0, 1).imag[3] *= x[:, 0]
    return z


def damp(part, by):
    part *= by
    part[0] += by[1]


def in_a_function(z, x):
    damp(z.real, x)
    damp(z[1:].imag, x[1:])
    return z


def while_it_runs(z, x):
    part, k = z.imag, 0
    while k < 3 and abs(part[k, 0]) < 50.0:
        part[k] += x[k] * z.real[k]
        z[k] *= 1j
        k += 1
    return z * k


def of_what_changes(z, x):
    w = z
    for k in range(3):
        w = w * (1.0 + x[k, 0])
        part = w.real
        part[k] = x[k] ** 2
        w.imag[k] *= part[k - 1]
    return w


def of_either(z, x):
    w = z * 2.0
    chosen = z if x[0, 0] > x[1, 1] else w
    chosen.real[1] = x[1] * x[2]
    return z + w


def of_a_copy(z, x):
    part = z.real.copy()
    part *= x
    z.imag[...] = part
    return z


def function_of_a_part(z, x):
    np.real(z)[0] = x[0]
    np.imag(z)[:, 2] = np.cumsum(x[:, 2]) * z.real[:, 2]
    return z


def parts_that_show_a_store(z, x):
    real, imag = z.real, z[1:].imag
    first = real[0, 0] * imag[1]
    z[0] = x[0] * z[1]
    for k in range(2):
        z[k + 1] += imag[k, 0] * x[k]
    return z * real + imag[0] ** 2 + first


PROGRAMS = [
    *(element, part_of_a_slice, whole_part, added, masked, gathered, by_name, overlapping, turned, in_a_function),
    *(while_it_runs, of_what_changes, of_either, of_a_copy, function_of_a_part, parts_that_show_a_store),
]


# ---- the oracle ------------------------------------------------------------------------------------------------------


def loss_of(function: Function) -> Function:
    """A real number that reads every element of what the program returns, and of the array it has changed."""

    def loss(z: np.ndarray, x: np.ndarray) -> Any:
        changed = z * (0.5 + 0.5j)
        y = function(changed, x)
        return np.sum((y * WEIGHTS + changed * y).real + np.abs(y) ** 2)

    return loss


def slopes(function: Function, z: np.ndarray, x: np.ndarray) -> Iterator[tuple[complex, float]]:
    """Differences of fourth order: du/dx - i du/dy for each element of `z`, du/dx for each of `x`."""
    step = 1e-3

    def along(dz: np.ndarray, dx: np.ndarray) -> float:
        far, near = (
            function(z + k * step * dz, x + k * step * dx) - function(z - k * step * dz, x - k * step * dx)
            for k in (2, 1)
        )
        return (8.0 * near - far) / (12.0 * step)

    for unit in np.eye(z.size).reshape(-1, *z.shape):
        yield along(unit, 0 * unit) - 1j * along(1j * unit, 0 * unit), along(0 * unit, unit)


def check(function: Function, backend: str) -> None:
    loss = loss_of(function)
    by_z, by_x = (np.reshape(each, Z.shape) for each in zip(*slopes(loss, Z, X), strict=True))
    derived = tg.differentiable(loss, wrt=(0, 1), backend=backend)
    value, (z_bar, x_bar) = derived.value_and_grad(Z, X)
    assert value == pytest.approx(loss(Z, X), rel=1e-14)
    np.testing.assert_allclose(z_bar, by_z, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(x_bar, by_x, rtol=1e-8, atol=1e-8)
    z_dot, x_dot = WEIGHTS[::-1], WEIGHTS.imag
    expected = np.sum(by_z * z_dot).real + np.sum(by_x * x_dot)
    assert derived.jvp((Z, X), (z_dot, x_dot))[1] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda part: part.__name__)
def test_program(function: Function) -> None:
    check(function, "python")


@pytest.mark.compiled
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda part: part.__name__)
def test_compiled_program(function: Function) -> None:
    check(function, "numba")


@pytest.mark.parametrize("function", [added, masked, of_what_changes], ids=lambda part: part.__name__)
def test_second_order(function: Function) -> None:
    tg.check_grads(loss_of(function), Z, X, modes=("forward", "reverse"), order=2, backend="python")


# ---- what is as in NumPy ---------------------------------------------------------------------------------------------


def signs(z: np.ndarray) -> np.ndarray:
    z.real += 1.0
    z.imag[1] = -0.0
    z.real[2] -= np.inf
    return z


@both
def test_the_other_part_keeps_its_bits(backend: str) -> None:
    z = np.array([complex(1.0, -0.0), complex(-0.0, 2.0), complex(1.0, np.nan), complex(0.0, -np.inf)])
    expected = signs(z.copy())
    function = tg.differentiable(signs, backend=backend)
    found = function(z.copy())
    np.testing.assert_array_equal(found.view(float), expected.view(float))
    np.testing.assert_array_equal(np.signbit(found.view(float)), np.signbit(expected.view(float)))
    assert function.vjp(np.ones(4, np.complex64))[0].dtype == np.complex64


# ---- what is refused -------------------------------------------------------------------------------------------------


def either_part(z: np.ndarray, x: np.ndarray) -> Any:
    part = z.real if x[0, 0] > 0.0 else z.imag
    part[0] = x[0]
    return np.abs(z).sum()


def part_that_changes(z: np.ndarray, x: np.ndarray) -> Any:
    part = z.real
    for k in range(2):
        part[k] *= x[k]
        part = z.imag
    return np.abs(z).sum()


def complex_into_a_part(z: np.ndarray, x: np.ndarray) -> Any:
    z.real[0] = z[1]
    return np.abs(z).sum()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (either_part, "may be a part of a complex one"),
        (part_that_changes, "may be a part of a complex one"),
        (complex_into_a_part, "lose their imaginary parts"),
    ],
)
def test_refused(function: Function, reason: str) -> None:
    with pytest.raises(TapegenError, match=reason) as caught:
        tg.grad(function, wrt=(0, 1), backend="python")(Z.copy(), X)
    assert caught.value.span is not None and caught.value.advice
