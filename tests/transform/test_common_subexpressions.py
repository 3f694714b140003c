"""Values that a backward sweep needs several times stand in it once, and only where they are the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg


def weighted(x, mass):
    total = 0.0
    for i in range(x.size):
        weight = 1.0 / (x[i] * x[i] + 0.5)
        total += mass[i] * weight * x[i] + mass[i] * weight * math.sin(x[i])
    return total


def counted_down(x, n):
    """`x[0] / n` is another number after `n` has changed."""
    total = 0.0
    while n > 0:
        total += math.sin(x[0] / n) * x[1]
        n -= 1
        if n > 0:
            total += math.exp(x[0] / n) * x[1]
    return total


def in_branches(x, n):
    total = 0.0
    for i in range(n):
        if x[i] > 0.5:
            total += math.sin(2.0 * x[0]) * x[i]
        else:
            total += math.cos(2.0 * x[0]) * x[i]
    return total * math.exp(2.0 * x[0])


def reassigned(x, n):
    step = x[0]
    total = 0.0
    for _ in range(n):
        total += math.sin(step * x[1]) * step
        step = step * x[1]
        total += math.cos(step * x[1]) * step
    return total


def columns(x, n):
    """A column is read twice before it changes and twice after; the view of the second half sees both."""
    a = x.reshape(n, -1).copy()
    total = 0.0
    for j in range(n):
        total += np.sum(a[:, j] * a[:, j] * a[j])
        a[:, j] = a[:, j] * math.sin(total)
        total += np.sum(a[1:, j] * a[1:, j])
        a[1:, j] *= a[:-1, j]
    return total


def differences(function: Callable[..., float], x: np.ndarray, *rest: Any) -> np.ndarray:
    """Central differences of fourth order."""
    found = np.empty_like(x)
    for k in range(x.size):
        at = {}
        for step in (-2, -1, 1, 2):
            moved = x.copy()
            moved[k] += step * 1e-3
            at[step] = function(moved, *rest)
        found[k] = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / 12e-3
    return found


@pytest.mark.parametrize(
    ("function", "rest"),
    [
        (weighted, (np.array([1.5, 0.3, 2.0, 0.8]),)),
        (counted_down, (3,)),
        (in_branches, (3,)),
        (reassigned, (3,)),
        (columns, (2,)),
    ],
)
@pytest.mark.parametrize("form", ["joint", "split"])
def test_gradients(function: Callable[..., float], rest: Any, form: str) -> None:
    x = np.array([0.7, 1.1, 0.4, 0.9])
    derived = tg.differentiable(function, backend="python")
    found = derived.grad(x, *rest) if form == "joint" else derived.vjp(x, *rest)[1](1.0)
    np.testing.assert_allclose(found, differences(function, x, *rest), rtol=1e-9)


def test_an_equal_product_stands_once() -> None:
    backward = str(tg.differentiable(weighted).inspect(np.ones(3), np.ones(3)).backward)
    assert backward.count("mass_i * weight\n") == 1


def test_names_of_the_user_stay() -> None:
    def f(x, h):
        total = 0.0
        for i in range(x.size):
            half = x[i] * h
            again = x[i] * h
            total += half * half * again * again
        return total

    backward = str(tg.differentiable(f).inspect(np.ones(3), 2.0).backward)
    assert "        half = " in backward
    assert "        again = " in backward


def test_a_view_that_stands_twice_is_recorded_once() -> None:
    def f(a):
        total = 0.0
        for j in range(a.shape[1]):
            total += np.sqrt(np.sum(a[:, j] * a[:, j]))
            a[:, j] = 0.5 * a[:, j]
        return total + np.sum(a)

    inspected = tg.differentiable(f).inspect(np.ones((3, 2)))
    assert inspected.joint.count("a_kept_tape = ") == 1
    assert "a_kept_1" not in inspected.joint
    assert "np.sum(a[:, j] * a[:, j])" in inspected.primal
