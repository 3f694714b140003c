"""`sliding_window_view`: a read-only view in which elements occur several times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tapegen import differentiable
from tapegen.errors import NotDifferentiable
from tests.judged import both, raises_as_python, right

V = np.array([0.3, 0.5, 0.7, 0.2, 0.9])
M = np.arange(1.0, 13.0).reshape(3, 4) / 7


def moving_average(v):
    return np.sum(sliding_window_view(v, 3).mean(axis=1) ** 2)


def of_a_temporary(v):
    w = sliding_window_view(v * 2, 2)
    return np.sum(w[:, 0] * w[:, 1])


def filtered(v):
    return np.sum((np.lib.stride_tricks.sliding_window_view(v, 3) @ np.array([0.2, 0.5, 0.3])) ** 2)


def rows_in_a_loop(v):
    total = 0.0
    for row in sliding_window_view(v, 3):
        total += row[0] * row[2]
    return total


def copied(v):
    w = sliding_window_view(v, 2).copy()
    w[0] = 1.0
    return np.sum(w**2)


def stored_through_the_base(v):
    x = v * 1.0
    w = sliding_window_view(x, 2)
    x[1] = v[0] ** 2
    return np.sum(w**2) + w[0, 1] * w[2, 1]


def smoothed(v):
    x = v * 1.0
    for _ in range(3):
        x[1:] = sliding_window_view(x, 2).sum(axis=1) * 0.5
    return np.sum(x**2)


def backwards(v):
    w = sliding_window_view(v[::-2], 2)
    return np.sum(w[1] * w[0])


def pooled(m):
    return np.sum(sliding_window_view(m, (2, 2)).max(axis=(2, 3)) ** 2)


def along_rows(m):
    return np.sum(np.std(sliding_window_view(m, 2, axis=-1), axis=-1))


def twice_along_an_axis(m):
    return np.sum(np.sin(sliding_window_view(m, window_shape=(2, 2), axis=(1, 1))) ** 2)


PROGRAMS: list[tuple[Callable[..., Any], Any]] = [
    *((function, V) for function in (moving_average, of_a_temporary, filtered, rows_in_a_loop, copied)),
    *((function, V) for function in (stored_through_the_base, smoothed, backwards)),
    *((function, M) for function in (pooled, along_rows, twice_along_an_axis)),
    *((function, np.asfortranarray(M)) for function in (pooled, along_rows)),
]


@pytest.mark.parametrize(("function", "x"), PROGRAMS)
@both
def test_gradients(function: Callable[..., Any], x: Any, backend: str) -> None:
    right(function, x, backend=backend)


@both
def test_a_size_that_is_known_at_run_time(backend: str) -> None:
    def products(v, n):
        return np.sum(np.prod(sliding_window_view(v, n), axis=1))

    for size in (2, 3, 5):
        right(products, V, size, backend=backend)
    raises_as_python(products, V, 6, backend=backend)


@both
def test_windows_are_read_only(backend: str) -> None:
    def stored(v):
        w = sliding_window_view(v, 2)
        w[0] = 1.0
        return np.sum(w)

    def writeable(v):
        w = sliding_window_view(v, 2, writeable=True)
        w[0] = 1.0
        return np.sum(w)

    raises_as_python(stored, V, backend=backend)
    with pytest.raises(NotDifferentiable, match="'writeable' of windows"):
        differentiable(writeable, backend=backend).grad(V)
