"""Integers that a loop counts are functions of the iteration in the backward sweep; others are recorded."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tests.oracle import numerical_gradient

X = np.random.default_rng(2).uniform(0.5, 1.5, 60)


def triangle(x, n):
    total = 0.0
    k = n
    for i in range(n):
        row = x[i] * x[i]
        for _ in range(i):
            row *= x[k]
            k += 1
        total += row
    return total


def strict_upper_triangle(x, n):
    total = 1.0
    k = 0
    for i in range(n - 1):
        for _ in range(i + 1, n):
            total *= x[k]
            k += 1
    return total


def offsets(x, n):
    total = 1.0
    start = 3
    for i in range(1, n):
        total *= np.sum(x[start : start + i])
        start += i
    return total


def offsets_backwards(x, n):
    total = 1.0
    end = 40
    for i in range(n - 1, 0, -1):
        total *= np.sum(x[end : end + i])
        end -= i
    return total


def in_pairs(x, n):
    total = 1.0
    k = 0
    for i in range(0, 2 * n, 2):
        total *= x[k] + 0.1 * i
        k += i + 1
        k -= 1
    return total


def flattened(x, n):
    a = x[:12].reshape((4, 3))
    total = 1.0
    k = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total *= a[i, j] * x[k + 12]
            k += 1
    return total


def skipping(x, n):
    """The inner loop may make fewer iterations than its bounds say."""
    total = 1.0
    k = 0
    for i in range(n):
        for _ in range(i):
            if x[k] > 1.2:
                break
            k += 1
        total *= x[k]
    return total


def never_backwards(x, n):
    """The bounds of the inner loop differ by less than nothing in the first iterations."""
    total = 1.0
    k = 0
    for i in range(n):
        for _ in range(2, i):
            k += 1
        total *= x[k]
    return total


def in_threes(x, n):
    total = 1.0
    k = 0
    for i in range(n):
        for _ in range(0, i, 3):
            k += 1
        total *= x[k]
    return total


def by_a_branch(x, n):
    total = 1.0
    k = 0
    for i in range(n):
        if x[i] > 1.0:
            k += i
        total *= x[k]
    return total


def of_squares(x, n):
    total = 1.0
    k = 0
    for i in range(n):
        total *= x[k]
        k += i * i
    return total


@pytest.mark.parametrize("f", [triangle, strict_upper_triangle, offsets, offsets_backwards, in_pairs, flattened])
def test_sums_of_affine_steps_are_not_recorded(f: Callable[..., Any]) -> None:
    text = _checked(f)
    assert not re.search(r"\b(k|start|end)(_\d+)?_tape", text)


@pytest.mark.parametrize("f", [skipping, never_backwards, in_threes, by_a_branch, of_squares])
def test_other_integers_are_recorded(f: Callable[..., Any]) -> None:
    assert re.search(r"\bk(_\d+)?_tape", _checked(f))


def _checked(f: Callable[..., Any]) -> str:
    ours = differentiable(backend="python")(f)
    for n in (0, 1, 2, 5):
        want = numerical_gradient(f, (X, n), paths=[(0,)]).value[(0,)]
        np.testing.assert_allclose(ours.value_and_grad(X, n)[1], want, rtol=1e-6, atol=1e-9)
    return str(ours.inspect(X, 5))


def shape_of_a_row(a, b):
    total = 0.0
    for row in a:
        d = row.size
        scaled = np.exp(b[:d]) * row
        for i in range(1, d):
            scaled[i] += b[i : i + 1] @ scaled[i - 1 : i]
        total += scaled @ scaled
    return total


def test_sizes_of_rows_are_those_of_the_matrix() -> None:
    a, b = X[:12].reshape((3, 4)), X[:6]
    ours = differentiable(backend="python")(shape_of_a_row)
    want = numerical_gradient(shape_of_a_row, (a, b), paths=[(0,)]).value[(0,)]
    np.testing.assert_allclose(ours.grad(a, b), want, rtol=1e-6)
    text = str(ours.inspect(a, b))
    assert "append" not in text and "d_tape" not in text
