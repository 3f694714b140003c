"""Small matrices in loops as scalars, and their products as expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tests.oracle import numerical_gradient

R = np.random.default_rng(5)
W = R.normal(size=(3, 3)) * 0.4
Y = R.normal(size=6)


def filtered(w: np.ndarray, y: np.ndarray) -> Any:
    """The state and its covariance are carried from step to step, and both names of the state are moved."""
    turn, seen = np.array([[1.0, 0.1], [-0.2, 0.9]]), np.array([[1.0, 0.5]])
    state, spread = np.zeros(2), np.eye(2) * 0.5
    total = 0.0
    for t in range(len(y)):
        state = turn @ state
        spread = turn @ spread @ turn.T + np.diag(np.array([w[0, 0] ** 2, w[1, 1] ** 2]))
        s = (seen @ spread @ seen.T)[0, 0] + 0.3
        gain = spread @ seen.T / s
        e = y[t] - seen @ state
        state = state + gain @ e
        spread = (np.eye(2) - gain @ seen) @ spread
        total += np.log(s) + e[0] ** 2 / s
    return total + np.sum(state)


def turned(w: np.ndarray, y: np.ndarray) -> Any:
    """Three axes; a vector from the left, and one that is overwritten by its own product."""
    v = np.array([1.0, y[0], -0.5])
    total = 0.0
    for t in range(len(y)):
        r = np.array([[np.cos(y[t]), -np.sin(y[t]), 0.0], [np.sin(y[t]), np.cos(y[t]), 0.0], [0.0, 0.0, w[t % 3, 1]]])
        v = r @ v
        u = v @ r.T
        total += u @ v + np.sum(np.dot(r, np.sin(r))[0] * y[t])
    return total


def stored_through_a_view(w: np.ndarray, y: np.ndarray) -> Any:
    total = 0.0
    for t in range(len(y)):
        m = np.array([[y[t], 1.0], [0.5, w[0, 1]]])
        row = m[1]
        row *= 2.0
        total += np.sum(m @ m)
    return total


def two_names(w: np.ndarray, y: np.ndarray) -> Any:
    """Both names of one matrix are used after the assignment."""
    a = np.eye(2)
    total = 0.0
    for t in range(len(y)):
        b = np.array([[w[0, 0], y[t]], [0.0, 1.0]])
        a = b
        b[0, 1] += 1.0
        total += np.sum(a @ b) + a[0, 1]
    return total


def on_some_paths(w: np.ndarray, y: np.ndarray) -> Any:
    a = np.eye(2)
    total = 0.0
    for t in range(len(y)):
        if y[t] > 0.0:
            a = np.array([[w[0, 0], y[t]], [0.2, 1.0]])
        elif y[t] < -1.0:
            break
        a = a @ a * 0.1
        total += a[0, 0] - a[1, 1] * y[t]
    return total + np.sum(a)


def four_rows(w: np.ndarray, y: np.ndarray) -> Any:
    """Products in loops, whose elements stay in memory."""
    a = np.eye(4)
    a[0, 3] = w[0, 0]
    total = 0.0
    for t in range(len(y)):
        b = a * y[t]
        total += np.sum(b @ a.T) + np.sum(a[0] @ b)
    return total


PROGRAMS = [filtered, turned, stored_through_a_view, two_names, on_some_paths, four_rows]


@pytest.mark.parametrize("function", PROGRAMS)
def test_values_and_gradients(function: Callable[..., Any]) -> None:
    value, gradient = tg.value_and_grad(function, wrt=(0, 1), backend="numba")(W, Y)
    assert value == pytest.approx(function(W, Y), rel=1e-12)
    expected = numerical_gradient(function, (W, Y)).value
    for k, own in enumerate(gradient):
        np.testing.assert_allclose(own, expected[k,], rtol=1e-7, atol=1e-8)


def test_float32() -> None:
    w, y = W.astype(np.float32), Y.astype(np.float32)

    def f(w: np.ndarray, y: np.ndarray) -> Any:
        a = np.eye(2, dtype=w.dtype)
        for t in range(len(y)):
            a = np.array([[w[0, 0], y[t]], [y[t], w[1, 1]]]) @ a
        return np.sum(a)

    value, gradient = tg.value_and_grad(f, backend="numba")(w, y)
    assert type(value) is np.float32
    assert value == pytest.approx(f(w, y), rel=1e-5)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, tg.grad(f, backend="python")(W, Y), rtol=1e-4)


def test_elements_are_scalars() -> None:
    text = tg.differentiable(filtered, backend="numba").inspect(W, Y).compiled
    loop = text[text.index("    for t in range(") : text.index("    # ---- backward sweep")]
    assert "np.dot" not in loop
    assert "np.empty" not in loop
    assert "spread_at_0_1" in text or "spread_1_at_0_1" in text


def test_shapes_that_do_not_fit() -> None:
    def f(w: np.ndarray, y: np.ndarray) -> Any:
        total = 0.0
        for t in range(len(y)):
            a = np.array([[w[0, 0], y[t]], [0.2, 1.0]])
            total += np.sum(a @ np.array([y[t], 1.0, 2.0]))
        return total

    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        tg.grad(f, backend="numba")(W, Y)
