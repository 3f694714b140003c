"""Names in generated text: one name for each variable of the user where its versions do not meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg

A = np.array([0.3, -0.8, 1.2, 0.7])


def nested_sums(a, x):
    s = 0.0
    for i in range(len(a)):
        for j in range(i):
            s += a[i] * a[j] * x
    return s


def exits_early(a, x):
    s = 0.0
    for i in range(len(a)):
        s = s + a[i] * x
        if s > 0.5:
            break
    return s


def counts_too(a, x):
    n = 0
    while n < 9:
        x = x * a[n % len(a)]
        n += 1
        if abs(x) < 0.1:
            break
    return x * n


def halves(a, x):
    total = 0.0
    for i in range(len(a)):
        y = a[i] * x
        while y > 0.2:
            y = y / 2.0
        total = total + y
    return total


def swaps(a, x):
    b = 1.0
    for i in range(len(a)):
        x, b = b * a[i], x
        if x > 2.0:
            break
    return x + b * b


def old_and_new(a, x):
    s = 0.0
    for i in range(len(a)):
        old = s
        for j in range(3):
            s += a[i] * old + j * x
        s = s - old * x
    return s


def read_in_the_other_branch(a, x):
    s = 1.0
    for i in range(len(a)):
        if i % 2 == 0:
            t = s
            for _ in range(2):
                t = t * a[i]
        else:
            t = s
            s = s * x
        s = t + s
    return s


def moved_on_one_way_only(a, x):
    best = a[0] * x
    for i in range(len(a)):
        new = a[i] * x * i
        if new > best:
            best = new
            if best > 1.0:
                break
        else:
            best = best + 0.1 * new
    return best


PROGRAMS = [
    nested_sums,
    exits_early,
    counts_too,
    halves,
    swaps,
    old_and_new,
    read_in_the_other_branch,
    moved_on_one_way_only,
]


@pytest.mark.parametrize("func", PROGRAMS)
def test_gradients_are_those_of_differences(func: Callable[..., Any]) -> None:
    value, (a_bar, x_bar) = tg.value_and_grad(func, wrt=(0, 1), backend="python")(A, 0.9)
    assert value == func(A, 0.9)
    step = 1e-6
    assert x_bar == pytest.approx((func(A, 0.9 + step) - func(A, 0.9 - step)) / (2 * step), rel=1e-7)
    for k, unit in enumerate(np.eye(len(A)) * step):
        assert a_bar[k] == pytest.approx((func(A + unit, 0.9) - func(A - unit, 0.9)) / (2 * step), rel=1e-7)


def _body(text: Any) -> list[str]:
    return [line.strip() for line in str(text).splitlines()]


@pytest.mark.parametrize(
    ("func", "lines"),
    [
        (nested_sums, ["s = 0.0", "s += a[i] * a[j] * x"]),
        (exits_early, ["s = 0.0", "s += a[i] * x"]),
        (counts_too, ["n = 0", "n += 1"]),
        (halves, ["total = 0.0", "y = a[i] * x", "y /= 2.0", "total += y"]),
    ],
)
def test_the_primal_has_the_users_names(func: Callable[..., Any], lines: list[str]) -> None:
    names = {line.split()[0] for line in lines}
    have = [line for line in _body(tg.differentiable(func).inspect(A, 0.9).primal) if line.split(" ")[0] in names]
    assert have == lines


@pytest.mark.parametrize("func", [exits_early, counts_too])
def test_where_both_ways_do_the_same_the_test_is_not_recorded(func: Callable[..., Any]) -> None:
    seen = tg.differentiable(func).inspect(A, 0.9)
    assert "test" not in str(seen.forward)
    assert "if " not in str(seen.backward)


def test_results_of_a_tuple_are_called_results() -> None:
    def both(x):
        return x * 2.0, x * x

    assert "return result, result_1" in str(tg.differentiable(both).inspect(1.0).primal)
