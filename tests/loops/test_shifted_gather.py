"""Loops that add to neighbouring elements gather them, wherever no iteration waits for another one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tests.grown.loop_texts import uncompiled

R = np.random.default_rng(11)


def bending(u: Any) -> Any:
    energy = 0.0
    for i in range(1, u.shape[0] - 1):
        d = u[i - 1] - 2.0 * u[i] + u[i + 1]
        energy += d * d
    return 0.5 * energy


def advected(u: Any, c: Any) -> Any:
    """Values of other arrays, the sum of a scalar, and elements that each iteration resets."""
    n = u.shape[0]
    rate = np.zeros(n)
    total = 0.0
    for k in range(3):
        for i in range(2, n - 1):
            rate[i] = (u[i + 1] - u[i - 2]) * u[i - 1] * c + rate[i] * 0.5
        for i in range(n):
            total += rate[i] * u[k]
    return total


def conducted(u: Any, k: Any) -> Any:
    """Additions in the primal, one row of a matrix after the other."""
    heat = np.zeros(u.shape)
    for i in range(u.shape[0]):
        for j in range(u.shape[1] - 1):
            flux = k[j] * (u[i, j + 1] - u[i, j])
            heat[i, j] += flux
            heat[i, j + 1] -= flux
    return np.sum(heat * heat)


def counted(u: Any, w: Any) -> Any:
    """The counter is a number of the value."""
    s = 0.0
    for i in range(3, u.shape[0]):
        s += w * i * u[i] * u[i - 1] * u[i - 3]
    return s


def crossing(u: Any, c: Any) -> Any:
    """The same element on both sides of a product."""
    s = 0.0
    for i in range(u.shape[0] - 1):
        s += (u[i] + c * u[i + 1]) * (u[i] - u[i + 1])
    return s


GATHERED: dict[Any, tuple[Any, ...]] = {
    bending: (),
    advected: (0.7,),
    conducted: (R.random(40),),
    counted: (1.5,),
    crossing: (0.3,),
}


@pytest.mark.parametrize("function", GATHERED, ids=lambda function: function.__name__)
def test_gradients_are_those_of_the_loop(function: Any) -> None:
    others = GATHERED[function]
    wrt = tuple(range(1 + len(others)))
    sample = R.random((3, 9)) if function is conducted else R.random(9)
    with uncompiled():
        ours = tg.differentiable(function, wrt=wrt, backend="numba", cache=False)
        with tg.debug(disable=("distribute_loops",)):
            plain = tg.differentiable(function, wrt=wrt, backend="numba", cache=False)
            plain.value_and_grad(sample, *others)
        for n in (*range(4, 12), 33):
            u = R.random((3, n)) if function is conducted else R.random(n)
            value, parts = ours.value_and_grad(u, *others)
            want, expected = plain.value_and_grad(u, *others)
            assert value == want
            for part, right in zip(parts, expected, strict=True):
                np.testing.assert_allclose(part, right, rtol=1e-12, atol=1e-14)
    text = str(ours.inspect(sample, *others).compiled)
    assert " >= " in text.split("backward sweep")[1]


def passed_on(u: Any, a: Any) -> Any:
    """The backward sweep adds to elements of vectors and of matrices."""
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[0]):
            a[i, j] = a[i - 1, j - 1] * u[j] + a[i - 1, j]
    return np.sum(a * a)


def test_additions_to_arrays_of_several_ranks() -> None:
    u, a = R.random(9), R.random((9, 9))
    with uncompiled():
        ours = tg.differentiable(passed_on, wrt=(0, 1), backend="numba", cache=False).value_and_grad(u, a.copy())
    want = tg.differentiable(passed_on, wrt=(0, 1), backend="python").value_and_grad(u, a.copy())
    for part, right in zip(ours[1], want[1], strict=True):
        np.testing.assert_allclose(part, right, rtol=1e-12)


def carried(u: Any) -> Any:
    """Each iteration waits for the sum of the one before."""
    x = np.zeros(u.shape[0])
    for i in range(1, u.shape[0] - 1):
        x[i] = u[i] * x[i - 1] + u[i - 1] * u[i + 1]
    return np.sum(x)


def dear(u: Any) -> Any:
    s = 0.0
    for i in range(1, u.shape[0] - 1):
        s += math.exp(u[i - 1] * u[i]) / u[i + 1]
    return s


def scattered(u: Any, k: Any) -> Any:
    s = 0.0
    for i in range(u.shape[0] - 1):
        s += u[k[i]] * u[k[i + 1]]
    return s


@pytest.mark.parametrize(
    ("function", "others"), [(carried, ()), (dear, ()), (scattered, (np.array([0, 2, 1, 2, 3, 3, 4, 1, 0]),))]
)
def test_other_loops_stay(function: Any, others: tuple[Any, ...]) -> None:
    u = R.random(9) + 0.5
    text = str(tg.differentiable(function).inspect(u, *others).compiled)
    assert "l + " not in text or "_row[" in text
    with uncompiled():
        ours = tg.differentiable(function, backend="numba", cache=False).value_and_grad(u, *others)
    want = tg.differentiable(function, backend="python").value_and_grad(u, *others)
    np.testing.assert_allclose(ours[1], want[1], rtol=1e-12)
