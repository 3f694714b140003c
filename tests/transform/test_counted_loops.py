"""`while` loops that count are loops with a number of iterations; others stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tests.oracle import numerical_gradient

X = np.random.default_rng(2).uniform(0.5, 1.5, 30)


def upwards(x, n):
    total = 1.0
    i = 0
    while i < n:
        total *= x[i]
        i += 1
    return total


def in_twos(x, n):
    total = 1.0
    i = 1
    while 2 * n >= i:
        total *= x[i]
        i += 2
    return total


def downwards(x, n):
    total = 1.0
    i = n
    while i > 0:
        total *= x[i]
        i = i - 1
    return total


def nested(x, n):
    total = 1.0
    i = n - 1
    while i >= 0:
        j = i
        while j < n:
            total *= x[j] + x[i]
            j += 1
        i -= 1
    return total


def inner_break(x, n):
    total = 1.0
    i = 0
    while i < n:
        for j in range(i, n):
            if x[j] > 1.2:
                break
            total *= x[j]
        i += 1
    return total


def begun_in_a_branch(x, n):
    total = 1.0
    i = 0
    if x[0] > 1.0:
        i = 1
    while i < n:
        total *= x[i]
        i += 1
    return total


@pytest.mark.parametrize("f", [upwards, in_twos, downwards, nested, inner_break, begun_in_a_branch])
def test_counting_loops_have_a_number_of_iterations(f: Callable[..., Any]) -> None:
    assert "while" not in _checked(f)


def read_later(x, n):
    total = 1.0
    i = 0
    while i < n:
        total *= x[i]
        i += 1
    return total * x[i]


def left(x, n):
    total = 1.0
    i = 0
    while i < n:
        if x[i] > 1.2:
            break
        total *= x[i]
        i += 1
    return total


def skipped(x, n):
    total = 1.0
    i = 0
    while i < n:
        i += 1
        if x[i] > 1.2:
            continue
        total *= x[i]
    return total


def moving_bound(x, n):
    total = 1.0
    i = 0
    while i < n:
        total *= x[i]
        if x[i] > 1.0:
            n -= 1
        i += 1
    return total


def two_steps(x, n):
    total = 1.0
    i = 0
    while i < n:
        if x[i] > 1.0:
            i += 1
        total *= x[i]
        i += 1
    return total


def of_values(x, n):
    total = x[0]
    i = 0
    while i < total * n:
        total *= 0.9
        i += 1
    return total


@pytest.mark.parametrize("f", [read_later, left, skipped, moving_bound, two_steps, of_values])
def test_other_loops_stay(f: Callable[..., Any]) -> None:
    assert "while" in _checked(f)


def _checked(f: Callable[..., Any]) -> str:
    ours = differentiable(backend="python")(f)
    for n in (0, 1, 2, 5):
        want = numerical_gradient(f, (X, n), paths=[(0,)]).value[(0,)]
        np.testing.assert_allclose(ours.value_and_grad(X, n)[1], want, rtol=1e-6, atol=1e-9)
    return "\n".join(line for line in str(ours.inspect(X, 5).joint).splitlines() if "#" not in line)
