"""What is computed and set aside has no say, even where it is infinite or NaN (bad-inputs F86, for products too)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen import differentiable
from tests.judged import both

X = np.array([0.0, 1.0, 2.0])
SLOPE = np.array([0.0, 1.0, 1.0 + np.log(2.0)])
"""The derivative of `x * log(x)`, and what it is where that is set aside."""


def where(x: np.ndarray) -> Any:
    return np.sum(np.where(x > 0.0, x * np.log(x), 0.0))


def entropy_of_shares(x: np.ndarray) -> Any:
    p = x / np.sum(x)
    return np.sum(np.where(p > 0.0, p * np.log(p), 0.0))


def masked_store(x: np.ndarray) -> Any:
    y = x * np.log(x)
    y[x <= 0.0] = 0.0
    return y.sum()


def stores_in_a_loop(x: np.ndarray) -> Any:
    y = x * np.log(x)
    for i in range(x.size):
        if x[i] <= 0.0:
            y[i] = 0.0
    return y.sum()


def slice_(x: np.ndarray) -> Any:
    y = x * np.log(x)
    return y[1:].sum()


def one_element(x: np.ndarray) -> Any:
    y = x * np.log(x)
    return y[1] + y[2]


def index_array(x: np.ndarray) -> Any:
    y = x * np.log(x)
    return y[np.array([1, 2])].sum()


def mask(x: np.ndarray) -> Any:
    y = x * np.log(x)
    return y[x > 0.0].sum()


def branch(x: np.ndarray) -> Any:
    s = 0.0
    for i in range(x.size):
        t = x[i] * np.log(x[i])
        if x[i] > 0.0:
            s += t
    return s


def skipped(x: np.ndarray) -> Any:
    s = 0.0
    for i in range(x.size):
        t = x[i] * np.log(x[i])
        if not x[i] > 0.0:
            continue
        s += t
    return s


def ternary(x: np.ndarray) -> Any:
    s = 0.0
    for i in range(x.size):
        t = x[i] * np.log(x[i])
        s += t if x[i] > 0.0 else 0.0
    return s


def nansum(x: np.ndarray) -> Any:
    return np.nansum(x * np.log(x))


def element_by_element(x: np.ndarray) -> Any:
    y = np.zeros_like(x)
    for i in range(x.size):
        y[i] = x[i] * np.log(x[i])
    return np.sum(np.where(x > 0.0, y, 0.0))


def through_a_call(x: np.ndarray) -> Any:
    return np.sum(np.where(x > 0.0, _spread(x, np.log(x)), 0.0))


def _spread(x: Any, y: Any) -> Any:
    return 0.5 * (x * y) + 0.5 * y * x


SAME_SLOPE = (
    *(where, masked_store, stores_in_a_loop, slice_, one_element, index_array, mask, branch, skipped, ternary, nansum),
    *(element_by_element, through_a_call),
)


@pytest.mark.parametrize("func", SAME_SLOPE, ids=lambda func: func.__name__)
@both
def test_a_product_that_is_set_aside(func: Callable[..., Any], backend: str) -> None:
    derived = differentiable(func, backend=backend)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(derived.grad(X), SLOPE, rtol=1e-15)
        forward = [derived.jvp((X,), (direction,))[1] for direction in np.eye(3)]
    np.testing.assert_allclose(forward, SLOPE, rtol=1e-15)


@pytest.mark.parametrize("func", [where, slice_, index_array, branch, nansum], ids=lambda func: func.__name__)
def test_a_tape_sets_the_same_aside(func: Callable[..., Any]) -> None:
    x = tg.constant(X)
    with np.errstate(all="ignore"), tg.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = func(x)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), SLOPE, rtol=1e-15)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(tape.source(y, [x]).run()[0].numpy(), SLOPE, rtol=1e-15)


def test_a_tangent_of_what_is_set_aside() -> None:
    x = tg.Variable(X)
    with np.errstate(all="ignore"), tg.ForwardAccumulator(x, tg.constant([1.0, 0.0, 0.0])) as accumulator:
        y = where(x)
    assert accumulator.jvp(y).numpy() == 0.0


@both
def test_the_second_derivative(backend: str) -> None:
    derived = differentiable(where, backend=backend)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(tg.hvp(derived, (X,), (np.ones(3),)), [0.0, 1.0, 0.5], rtol=1e-15)
        np.testing.assert_allclose(tg.hessian(derived)(X), np.diag([0.0, 1.0, 0.5]), rtol=1e-15)


@both
def test_shares_of_a_sum(backend: str) -> None:
    derived = differentiable(entropy_of_shares, backend=backend)
    with np.errstate(all="ignore"):
        gradient = derived.grad(X)
    # d(sum of p log p) = sum of (1 + log p) dp over the positive shares, dp_i = dx_i / s - p_i ds / s
    p = X[1:] / 3.0
    mean = np.sum(p * (1.0 + np.log(p)))
    np.testing.assert_allclose(gradient, [-mean / 3.0, *((1.0 + np.log(p)) - mean) / 3.0], rtol=1e-14)


@both
def test_a_row_of_a_jacobian_does_not_see_the_others(backend: str) -> None:
    derived = differentiable(lambda x: x * np.log(x), backend=backend)
    with np.errstate(all="ignore"):
        rows = tg.jacobian(derived, mode="reverse")(X)
    np.testing.assert_allclose(rows[1:], np.diag(SLOPE)[1:], rtol=1e-15)


def overflow(x: np.ndarray, k: float) -> Any:
    return np.sum(1.0 / (1.0 + k * np.exp(x))) + np.sum(np.minimum(k * np.exp(x), 5.0))


@both
def test_an_exponential_that_overflows(backend: str) -> None:
    derived = differentiable(overflow, backend=backend, wrt=(0, 1))
    with np.errstate(all="ignore"):
        x_bar, k_bar = derived.grad(np.array([0.0, 1000.0]), np.float64(2.0))
    np.testing.assert_allclose(x_bar, [-2.0 / 9.0 + 2.0, 0.0], rtol=1e-14)
    np.testing.assert_allclose(k_bar, -1.0 / 9.0 + 1.0, rtol=1e-14)


def plain(x: np.ndarray, w: np.ndarray) -> Any:
    s = 0.0
    for i in range(x.size):
        s += w[i] * np.sqrt(1.0 + x[i] * x[i]) / (1.0 + np.exp(-x[i]))
    return s


def test_nothing_is_guarded_where_nothing_can_happen() -> None:
    text = str(differentiable(plain, backend="python", wrt=(0, 1)).inspect(X, X).backward)
    assert text.count("!= 0.0") == 1  # exp(-x) may overflow


def test_a_program_without_results() -> None:
    x = X + 1.0
    assert differentiable(_halves, backend="python").vjp(x)[0] is None
    np.testing.assert_array_equal(x, (X + 1.0) / 2.0)


def _halves(x: np.ndarray) -> None:
    x /= 2.0


def rows_by_a_norm(a: np.ndarray) -> np.ndarray:
    out = np.empty_like(a)
    for k in range(a.shape[0]):
        r = np.sqrt(np.sum(a[k] * a[k]))
        out[k] = a[k] / r
        for j in range(k + 1, a.shape[0]):
            out[k] -= np.sum(out[k] * a[j]) * a[j]
    return out


def test_a_tangent_is_set_aside_with_its_value() -> None:
    """Only the poles themselves are guarded: a product that is returned, sliced or stored over hides nothing."""
    a = np.array([[1.0, 2.0], [0.5, -1.0]])
    derived = differentiable(rows_by_a_norm, backend="python")
    value, tangent = derived.jvp((a,), (np.ones_like(a),))
    step = 1e-6
    np.testing.assert_allclose(tangent, (rows_by_a_norm(a + step) - rows_by_a_norm(a - step)) / (2.0 * step), rtol=1e-8)
    np.testing.assert_array_equal(value, rows_by_a_norm(a))
    text = derived.inspect(a).tangent
    assert text.count("== 0.0") + text.count("!= 0.0") == 3  # the square root, and both operands of the division
    assert "out_dot = np.empty_like(out)" in text  # each element is stored beside that of the value
