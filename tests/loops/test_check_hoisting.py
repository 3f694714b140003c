"""Index checks made in front of a loop hold for loops with no iterations, and whatever the loop changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg


def store_with_unknown_step(x, j, step, n):
    for k in range(0, n, step):
        x[j] = 1.0 * k
    return np.sum(x)


def stop_that_an_outer_loop_changes(x, lengths, n):
    total = 0.0
    for i in range(n):
        lengths[0] = i + 3
        for j in range(lengths[0]):
            total += x[j]
    return total


def no_trips(x, n):
    z = 0.0
    for k in range(n - 12):
        z = x[n + 6]
        x[k] = z
    return np.sum(x) + z


def short_triangle(x, n, k):
    total = 0.0
    for i in range(n):
        for _ in range(i - 2):
            total += x[k]
    return total + x[0]


X = np.linspace(0.5, 1.5, 5)
CALLS = [
    (store_with_unknown_step, (7, 2, 5)),
    (store_with_unknown_step, (4, -2, 5)),
    (store_with_unknown_step, (7, -2, 5)),
    (stop_that_an_outer_loop_changes, (np.array([2, 3]), 4)),
    (stop_that_an_outer_loop_changes, (np.array([2, 3]), 3)),
    (no_trips, (5,)),
    (no_trips, (13,)),
    (short_triangle, (3, 6)),
    (short_triangle, (4, 6)),
]


def outcome(func: Any, x: np.ndarray, rest: tuple[Any, ...]) -> Any:
    given = [each.copy() if isinstance(each, np.ndarray) else each for each in rest]
    try:
        return float(func(x.copy(), *given))
    except IndexError:
        return IndexError


@pytest.mark.parametrize(("func", "rest"), CALLS, ids=lambda each: getattr(each, "__name__", None))
def test_compiled_loops_do_what_python_does(func: Any, rest: tuple[Any, ...]) -> None:
    compiled = tg.differentiable(func, backend="numba")
    expected = outcome(func, X, rest)
    assert outcome(compiled, X, rest) == expected
    if expected is IndexError:
        assert outcome(lambda *args: compiled.value_and_grad(*args)[0], X, rest) is IndexError
        return
    value, gradient = compiled.value_and_grad(X.copy(), *rest)
    assert value == pytest.approx(expected)
    for i, step in enumerate(np.eye(len(X)) * 1e-6):
        difference = (func(X + step, *rest) - func(X - step, *rest)) / 2e-6
        assert gradient[i] == pytest.approx(difference, abs=1e-7)
