"""Functions of NumPy that store values into an array of another type: what they convert, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg

BACKENDS = ("python", "numba")
V = np.array([1.92, 1.46, -1.7])


def converted(v: np.ndarray) -> Any:
    """Stores into arrays of integers and of single precision that NumPy converts by force."""
    a, b, c, d, e = np.arange(3), np.arange(3), np.arange(3), np.zeros(3, np.float32), np.zeros(3, np.float32)
    np.put(a, [1], v[0])
    np.place(b, b > 0, [v[0], v[1]])
    np.putmask(c, v > 0, v[0])
    np.copyto(d, v)
    np.copyto(e, 2.5, casting="safe")
    f = np.arange(3)
    np.copyto(f, v, casting="unsafe")
    g = np.insert(np.arange(3), 1, v[0])
    h = np.insert(np.arange(3), [0, 1], v[:2])
    i = np.insert(np.arange(6).reshape(2, 3), 1, v, axis=0)
    j = np.insert(np.zeros(3, np.float32), 1, v)
    return a, b, c, d, e, f, g, h, i, j


@pytest.mark.parametrize(("backend", "dtype"), [("python", np.float64), ("python", np.float32), ("numba", np.float64)])
def test_converted(backend: str, dtype: Any) -> None:
    v = V.astype(dtype)
    for found, expected in zip(tg.differentiable(converted, backend=backend)(v), converted(v), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_truncated_values_have_no_derivative(backend: str) -> None:
    def inserted(v: np.ndarray) -> Any:
        return np.sum(np.insert(np.arange(3), 1, v[0]) * v[1])

    value, gradient = tg.value_and_grad(inserted, backend=backend)(V)
    assert value == inserted(V)
    np.testing.assert_array_equal(gradient, [0.0, 4.0, 0.0])


def putmask(a: np.ndarray, v: np.ndarray) -> Any:
    np.putmask(a, v > 0, v)
    return a * v


def place(a: np.ndarray, v: np.ndarray) -> Any:
    np.place(a, v > 0, v)
    return a * v


def copyto(a: np.ndarray, v: np.ndarray) -> Any:
    np.copyto(a, v)
    return a * v


def copyto_number(a: np.ndarray, v: np.ndarray) -> Any:
    np.copyto(a, v[0])
    return a * v


def copyto_where(a: np.ndarray, v: np.ndarray) -> Any:
    np.copyto(a, v, where=v > 0)
    return a * v


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [putmask, place, copyto, copyto_number, copyto_where])
def test_refused_by_numpy(function: Any, backend: str) -> None:
    with pytest.raises(TypeError, match="Cannot cast"):
        function(np.arange(3), V)
    a = np.arange(3)
    with pytest.raises(TypeError, match=r"Cannot cast .* according to the rule"):
        tg.differentiable(function, wrt="v", backend=backend)(a, V)
    np.testing.assert_array_equal(a, np.arange(3))
