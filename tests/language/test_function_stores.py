"""Functions that write into arrays: `tests/function_stores.py` says how."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import AliasError
from tests.function_stores import cases
from tests.judged import both, refused, right
from tests.view_stores import wrong

X = np.array([[0.5, 1.5, 2.0], [0.3, 0.8, 0.4]])
V = np.array([0.7, 1.2, 0.9])


@pytest.mark.filterwarnings("ignore")
def test_sample() -> None:
    assert not wrong(1500, cases=cases)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore")
def test_larger_sample() -> None:
    assert not wrong(25, cases=cases)


def rows_at(x: np.ndarray, v: np.ndarray) -> Any:
    a = x * 1.0
    np.multiply.at(a, [1, 0, 1], v)
    np.divide.at(a, ([0, 1, 0], [2, 1, 2]), v[:1])
    np.power.at(a[:, 0], a[:, 0] > 0.3, 2.0)
    np.maximum.at(a, (slice(None), [0, 0]), v[1])
    np.subtract.at(a.T, np.array([[0, 1], [1, 0]]), a[:, :2])
    np.square.at(a, ([0, 0], 1))
    return np.sum(a * x)


@both
def test_at_every_kind_of_position(backend: str) -> None:
    right(rows_at, X + 2.0, V, backend=backend, wrt=(0, 1))


def vector_at_a_matrix(x: np.ndarray, v: np.ndarray) -> Any:
    a = x[0] * 1.0
    np.add.at(a, np.array([[0, 1], [1, 0]]), v[:2])
    return np.sum(a * a)


def test_values_spread_over_positions_as_documented() -> None:
    """NumPy 2.4 reads past the end of the values."""
    expected = X[0] + [V[0] + V[1], V[0] + V[1], 0.0]
    value, (x_bar, v_bar) = tg.value_and_grad(vector_at_a_matrix, wrt=(0, 1), backend="python")(X, V)
    assert value == pytest.approx(np.sum(expected**2), rel=1e-14)
    np.testing.assert_allclose(x_bar, [2 * expected, [0.0] * 3], rtol=1e-14)
    np.testing.assert_allclose(v_bar, [2 * (expected[0] + expected[1])] * 2 + [0.0], rtol=1e-14)


def put_outside(x: np.ndarray, v: np.ndarray) -> Any:
    a, b = x * 1.0, x * 1.0
    np.put(a, [0, 7, -8, 6], v, mode="wrap")
    np.put(b, [1, 9, -8], v, mode="clip")
    return np.sum(a * b)


@both
def test_put_outside(backend: str) -> None:
    right(put_outside, X, V, backend=backend, wrt=(0, 1))


# ---- operands that overlap what is stored element by element ---------------------------------------------------------


def placed(x: np.ndarray) -> Any:
    a = x * 1.0
    np.place(a, a > 0.4, a[1])
    return np.sum(a * x)


def masked(x: np.ndarray) -> Any:
    a = x * 1.0
    b = a[:, 1:]
    b[b > 0.6] = a[0]
    return np.sum(a * x)


def flat(x: np.ndarray) -> Any:
    a = x * 1.0
    a.flat[[1, 0, 1]] = a[0, ::-1]
    return np.sum(a * x)


def on_the_diagonal(x: np.ndarray) -> Any:
    a = x * 1.0
    np.fill_diagonal(a, np.diagonal(a)[::-1])
    return np.sum(a * x)


@pytest.mark.parametrize("function", [placed, masked, flat, on_the_diagonal])
def test_stored_one_by_one(function: Any) -> None:
    refused(function, X, error=AliasError, match="while it (still uses|reads)")
