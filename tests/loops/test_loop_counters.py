"""Counters of `while` loops: between which numbers they stay is known, and checks that cannot fail are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tests.judged import both, raises_as_python, right

X = np.linspace(0.2, 1.3, 9)


def neighbours(x: np.ndarray) -> Any:
    s, i = 0.0, 2
    while i < x.size:
        s += x[i - 2] * x[i]
        i += 1
    return s


def down(x: np.ndarray) -> Any:
    s, i = 0.0, x.size - 1
    while i >= 0:
        s += x[i] * x[i] * i
        i -= 1
    return s


def from_the_end(x: np.ndarray) -> Any:
    s, i = 0.0, -1
    while i > -x.size:
        s += x[i] * x[i - 1]
        i -= 1
    return s


def by_two_steps(x: np.ndarray) -> Any:
    s, i = 0.0, x.size - 1
    while i > 0:
        s += x[i] * x[i - 1]
        if s > 1.0:
            i -= 2
        else:
            i -= 1
    return s


def within_a_loop(x: np.ndarray) -> Any:
    s, j = 0.0, 3
    for i in range(3):
        k = j
        while k < x.size:
            s += x[k] * x[k - j + i]
            k += 2
        j += 1
    return s


KNOWN = [neighbours, down, from_the_end, by_two_steps, within_a_loop]


@pytest.mark.parametrize("func", KNOWN, ids=lambda func: func.__name__)
def test_the_forward_sweep_checks_nothing(func: Callable[..., Any]) -> None:
    text = str(differentiable(func).inspect(X).compiled)
    forward = text.partition("# ---- forward sweep")[2].partition("# ---- backward sweep")[0]
    assert "raise" not in forward and "< 0" not in forward


@pytest.mark.compiled
@pytest.mark.parametrize("func", KNOWN, ids=lambda func: func.__name__)
def test_they_are_right(func: Callable[..., Any]) -> None:
    right(func, X, backend="numba")


def from_a_name_that_changes(x: np.ndarray, n: int) -> Any:
    s = 0.0
    for r in range(n):
        m = r + 2
        i = m - 1
        while i >= 0:
            s += x[i] * x[m] * s + x[i] ** 2
            i -= 1
        m = m + 1
        s += x[m - 3] * m
    return s


def from_the_length_of_a_list(x: np.ndarray, n: int) -> Any:
    items, s = [], 0.0
    for k in range(n):
        items.append(x[k] * x[k])
    i = len(items) - 1
    while i >= 0:
        s += items[i] * s + x[i] * i
        i -= 1
    items.append(s)
    return s * len(items)


def from_the_size_of_a_part(x: np.ndarray, n: int) -> Any:
    s = 0.0
    for r in range(n):
        y = x[r:] * 1.5
        i = y.size - 1
        while i >= 1:
            s += y[i] * y[i - 1] * np.sin(s)
            i -= 1
    return s


@both
@pytest.mark.parametrize(
    "func",
    [from_a_name_that_changes, from_the_length_of_a_list, from_the_size_of_a_part],
    ids=lambda func: func.__name__,
)
def test_where_they_start(func: Callable[..., Any], backend: str) -> None:
    right(func, X, 3, backend=backend)


def test_what_is_known_from_the_trip_is_not_recorded() -> None:
    text = str(differentiable(down).inspect(X).forward)
    assert "recorded:               nothing" in text


def back_and_forth(x: np.ndarray, n: int) -> Any:
    s, i = 0.0, 1
    for k in range(n):
        s += x[i]
        if k % 3 == 0:
            i -= 1
        else:
            i += 2
    return s


def too_far(x: np.ndarray, n: int) -> Any:
    s, i = 0.0, n
    while i < x.size:
        s += x[i]
        i += 1
    return s


def too_far_down(x: np.ndarray, n: int) -> Any:
    s, i = 0.0, x.size - 1
    while i > -n:
        s += x[i] * x[i]
        i -= 1
    return s


@pytest.mark.compiled
@pytest.mark.parametrize("func", [back_and_forth, too_far, too_far_down], ids=lambda func: func.__name__)
def test_what_may_leave_the_array_is_checked(func: Callable[..., Any]) -> None:
    right(func, X, 5, backend="numba")
    right(func, X, -9 if func is too_far else 9, backend="numba")
    raises_as_python(func, X, -10 if func is too_far else 20, backend="numba")
