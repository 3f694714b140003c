"""Integers of fewer than 64 bits, and without signs: as bounds of ranges, and moved by more places than they have."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.errors import TapegenError
from tests.judged import both


def between(x: float, n: Any, k: Any) -> float:
    trips = 0
    for _ in range(-n, k):
        trips += 1
        if trips > 20:
            break
    return x * trips


def of_a_difference(x: float, n: Any, k: Any) -> float:
    total = 0.0
    for i in range(n - k, n + k, max(n, 1)):
        total += x * i
        if total > 1e9:
            break
    return total


LARGE = np.int32(2**30)
BOUNDS = [
    (LARGE, LARGE),
    (np.int32(-(2**31)), np.int32(5)),
    (np.int16(300), np.int16(32700)),
    (np.uint8(3), np.uint8(5)),
    (np.uint32(3), np.uint32(5)),
]


@both
@pytest.mark.parametrize("function", [between, of_a_difference], ids=lambda part: part.__name__)
def test_ranges_count_as_python_does(function: Callable, backend: str) -> None:
    derived = differentiable(function, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for n, k in BOUNDS:
            expected = function(1.5, n, k)
            assert derived(1.5, n, k) == expected
            assert derived.grad(1.5, n, k) == pytest.approx(expected / 1.5)


@pytest.mark.compiled
def test_ends_of_ranges_beyond_64_bits_are_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert between(1.5, np.uint64(3), np.uint64(5)) == 0.0
        with pytest.raises(TapegenError, match="more than 64 bits"):
            differentiable(between, backend="numba").grad(1.5, np.uint64(3), np.uint64(5))


def moved(x: float, n: Any, k: Any) -> float:
    return x * float(np.sum(np.left_shift(n, k))) + x * float(np.sum(n >> k))


def moved_of_python(x: float, n: int, k: int) -> float:
    return x * (n >> k)


SHIFTS = [
    (np.int32(-7), np.int32(33)),
    (np.uint8(200), np.uint8(9)),
    (np.array([1, -5, 7], np.int32), np.array([3, 40, -1], np.int32)),
    (np.array([1, -5, 7]), 65),
]


@both
def test_bits_may_leave_at_both_ends(backend: str) -> None:
    derived = differentiable(moved, backend=backend)
    for n, k in SHIFTS:
        assert derived(1.5, n, k) == moved(1.5, n, k)
        assert derived.grad(1.5, n, k) == moved(1.0, n, k)
    derived = differentiable(moved_of_python, backend=backend)
    assert [derived.grad(1.5, n, 70) for n in (5, -5)] == [0.0, -1.0]
    with pytest.raises(ValueError, match="negative shift count"):
        derived.grad(1.5, 5, -1)
