"""Compiled text looks at the largest of several indices once, and has one name for a size that stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapegen import differentiable


def constant_indices(x: Any, k: Any) -> Any:
    a = x[0] * k[1]
    b = x[3] * k[2]
    return a * b + x[1]


def exits_early(x: Any, n: int) -> Any:
    s = 1.0
    for i in range(n):
        s = s * x[1]
        if i == 0:
            break
        s = s * x[3]
    return s


def rebound(x: Any, y: Any, n: int) -> Any:
    s = x[1] * 2.0
    for _ in range(n):
        s = s * x[0]
        x = y
        s = s * x[3]
    return s


def several_sizes(x: Any, y: Any) -> Any:
    u = x * 2.0
    v = np.zeros(x.size)
    for i in range(x.shape[0]):
        v[i] = u[i] * y[i]
    return np.sum(v * u) + np.sum(u)


def text_of(func: Any, *args: Any) -> str:
    return differentiable(func).inspect(*args).compiled


def run(func: Any, *args: Any) -> float:
    """The value by the text that numba gets, as Python runs it."""
    namespace: dict[str, Any] = {}
    text = text_of(func, *args)
    exec(text.replace('@njit(error_model="numpy")\n', ""), namespace)
    return namespace[f"{func.__name__}_value_and_grad"](*args)[0]


def test_one_check_for_all_constant_indices() -> None:
    x, k = np.arange(1.0, 5.0), np.arange(1.0, 4.0)
    text = text_of(constant_indices, x, k)
    assert text.count("raise IndexError") == 1
    assert "< 4" in text and "< 3" in text and "< 1" not in text and "< 2" not in text
    assert run(constant_indices, x, k) == constant_indices(x, k)
    for short in ((x[:3], k), (x, k[:2])):
        with pytest.raises(IndexError):
            run(constant_indices, *short)


def test_a_check_that_may_not_be_reached_stays_where_it_is() -> None:
    short = np.array([3.0, 2.0])
    assert run(exits_early, short, 2) == exits_early(short, 2)
    with pytest.raises(IndexError):
        run(rebound, short, short, 1)
    assert run(rebound, short, np.arange(1.0, 5.0), 2) == rebound(short, np.arange(1.0, 5.0), 2)


def test_a_size_is_read_once() -> None:
    x = np.arange(1.0, 4.0)
    text = text_of(several_sizes, x, x + 1.0)
    assert text.count("x.shape[0]") == 1
    assert run(several_sizes, x, x + 1.0) == several_sizes(x, x + 1.0)


def for_its_size(x: Any, n: int) -> Any:
    a = np.empty(3)
    b = np.log(x[0])
    for i in range(n):
        a[i] = b * x[1]
    if x[0] > 1.0:
        a[0] = b
    return x[0] * a.size


def test_values_that_nobody_reads_are_not_computed_and_their_errors_stay() -> None:
    x = np.array([2.0, 3.0])
    text = text_of(for_its_size, x, 2)
    assert "    b = " not in text and "a[" not in text
    assert run(for_its_size, x, 2) == for_its_size(x, 2)
    with pytest.raises(IndexError):
        run(for_its_size, x, 4)
    with pytest.raises(IndexError):
        run(for_its_size, x[:1], 2)
