"""Loops over the elements of a stencil: their adjoints gather, unless an iteration depends on another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tests.grown.loop_texts import uncompiled

R = np.random.default_rng(31)
PASS = "separate_scatters"


def residual(u: Any, w: Any) -> Any:
    """One value to four neighbours, another one to the element itself, and a sum in a scalar."""
    total = 0.0
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            r = w * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])
            total += r * r
    return total


def slopes(u: Any, w: Any) -> Any:
    """Two values, each to two neighbours."""
    total = 0.0
    for i in range(1, u.shape[0] - 1):
        for j in range(2, u.shape[1] - 1):
            total += (u[i + 1, j] - u[i - 1, j]) ** 3 * w + np.exp(u[i, j + 1] - u[i, j - 2])
    return total


def swapped(u: Any, w: Any) -> Any:
    """Buffers that change places never overlap."""
    a = u.copy()
    b = u * w
    for _ in range(3):
        for i in range(1, u.shape[0] - 1):
            for j in range(u.shape[1] - 1):
                b[i, j] = w * a[i, j + 1] - a[i - 1, j] * 0.5 + a[i, j]
        a, b = b, a
    return np.sum(a * b)


def in_space(u: Any, w: Any) -> Any:
    c = u[:, :, None] * u[:, None, :]
    out = np.zeros_like(c)
    for i in range(c.shape[0] - 1):
        for j in range(1, c.shape[1]):
            for k in range(1, c.shape[2] - 1):
                out[i, j, k] = w * (c[i + 1, j, k] + c[i, j - 1, k] + c[i, j, k + 1] + c[i, j, k - 1])
    return np.sum(out * out)


def in_columns(u: Any, w: Any) -> Any:
    out = np.empty(u.shape)
    for j in range(u.shape[1]):
        for i in range(u.shape[0]):
            out[i, j] = 0.0
    for j in range(u.shape[1] - 1, 0, -1):
        for i in range(u.shape[0] - 1):
            out[i, j] += w * (u[i + 1, j] - u[i, j - 1] - u[i, j])
    return np.sum(out * out * u)


def again(u: Any, w: Any) -> Any:
    """Every iteration of an outer loop adds to the same elements."""
    out = np.zeros(u.shape)
    for k in range(u.shape[0]):
        for i in range(u.shape[0]):
            for j in range(2, u.shape[1]):
                out[i, j] += u[k, 0] * w * (u[i, j] - u[i, j - 1] + u[i, j - 2])
    return np.sum(out * out)


SEPARATED = (residual, slopes, swapped, in_space, in_columns, again)


def in_place(u: Any, w: Any) -> Any:
    """Each iteration reads what the one before has stored."""
    a = u.copy()
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            a[i, j] = w * (a[i - 1, j] + a[i, j - 1] + a[i, j + 1])
    return np.sum(a * a)


def triangular(u: Any, w: Any) -> Any:
    """The bounds of the inner loop change."""
    total = 0.0
    for i in range(1, u.shape[0]):
        for j in range(1, min(i, u.shape[1] - 1)):
            r = w * (u[i, j + 1] + u[i, j - 1])
            total += r * r
    return total


def two_views(u: Any, w: Any) -> Any:
    """Rows of one array, under two names."""
    a = u.copy()
    below, above = a[1:], a[:-1]
    for i in range(u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            below[i, j] = w * (above[i, j - 1] + above[i, j + 1])
    return np.sum(a * a)


def at_positions(u: Any, w: Any) -> Any:
    total = 0.0
    for i in range(u.shape[0] - 1):
        for j in range(u.shape[1] - 1):
            k = (i * j) % u.shape[1]
            r = w * (u[i, k] - u[i + 1, j])
            total += r * r
    return total


def read_at_hand(u: Any, w: Any) -> Any:
    """The backward sweep reads and resets elements that other iterations add to."""
    a = u * w
    for i in range(u.shape[0]):
        for j in range(1, u.shape[1] - 1):
            a[i, j] += w * (a[i, j - 1] + a[i, j + 1])
    return np.sum(a * a)


KEPT = (read_at_hand, in_place, triangular, two_views, at_positions)


def gradients(function: Callable[..., Any], *disabled: str) -> tg.DifferentiableFunction:
    with tg.debug(disable=disabled):
        found = tg.differentiable(function, wrt=(0, 1), backend="numba", cache=False)
        found.value_and_grad(R.random((4, 5)), 0.5)
    return found


def backward(function: tg.DifferentiableFunction) -> str:
    text = str(function.inspect(np.ones((4, 5)), 0.5).compiled)
    return text.split("backward sweep")[-1]


@pytest.mark.parametrize("function", [*SEPARATED, *KEPT], ids=lambda function: function.__name__)
def test_gradients_are_those_of_the_loops(function: Any) -> None:
    with uncompiled():
        ours, plain = gradients(function), gradients(function, PASS)
        for shape in ((4, 5), (7, 9), (3, 3), (2, 4), (5, 2), (2, 2), (3, 17)):
            u = R.normal(size=shape)
            u[1, 1] = -0.0
            value, parts = ours.value_and_grad(u, 0.3)
            want, expected = plain.value_and_grad(u, 0.3)
            assert value == want
            for part, right in zip(parts, expected, strict=True):
                np.testing.assert_allclose(part, right, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("function", SEPARATED, ids=lambda function: function.__name__)
def test_additions_to_neighbours_are_gathered(function: Any) -> None:
    with uncompiled():
        assert "_all[" in backward(gradients(function))


@pytest.mark.parametrize("function", KEPT, ids=lambda function: function.__name__)
def test_loops_stay_where_an_iteration_depends_on_another(function: Any) -> None:
    with uncompiled():
        assert "_all" not in backward(gradients(function))


def test_one_infinite_value_reaches_its_neighbours_alone() -> None:
    u = np.ones((6, 7))
    u[2, 3] = np.inf
    with uncompiled():
        ours, plain = gradients(slopes), gradients(slopes, PASS)
        with np.errstate(all="ignore"):
            for part, right in zip(ours.grad(u, 0.3), plain.grad(u, 0.3), strict=True):
                np.testing.assert_array_equal(np.isnan(part), np.isnan(right))
                np.testing.assert_array_equal(np.isfinite(part), np.isfinite(right))


def test_float32() -> None:
    u = R.random((6, 7)).astype(np.float32)
    with uncompiled():
        found = tg.differentiable(residual, wrt=(0,), backend="numba", cache=False)
        (ours,) = found.grad(u, np.float32(0.5))
        assert "_all = np.zeros(" in (text := str(found.inspect(u, np.float32(0.5)).compiled)) and "np.float32)" in text
    (want,) = tg.differentiable(residual, wrt=(0,), backend="python").grad(u, np.float32(0.5))
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, want, rtol=2e-5)
