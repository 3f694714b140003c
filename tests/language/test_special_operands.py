"""Operands at which compiled code computed something else than NumPy: ties, signs of zero, bools, shorter sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tests.judged import both, right, same

R = np.random.default_rng(4)
A, B = np.array([True, False, True]), np.array([True, True, False])
X = np.array([1.5, 2.5, -3.0])


@both
@pytest.mark.parametrize("mode", ["full", "same", "valid", 1])
def test_correlations_of_any_two_lengths(mode: Any, backend: str) -> None:
    def f(a: Any, v: Any) -> Any:
        c = np.correlate(a, v, mode)
        return np.sum(c * np.arange(1.0, c.size + 1.0))

    for n, m in ((5, 2), (2, 5), (3, 5), (4, 4), (1, 4), (4, 1), (4, 6)):
        right(f, R.random(n), R.random(m), backend=backend, wrt=(0, 1))


@pytest.mark.compiled
@pytest.mark.parametrize("right_side", [False, True])
def test_edges_of_decreasing_bins(right_side: bool) -> None:
    def f(x: Any, a: Any, bins: Any) -> Any:
        return x * np.sum(np.digitize(a, bins, right=right_side) * np.arange(1.0, 7.0))

    a = np.array([2.0, 3.0, 1.0, 0.5, 2.5, 4.0])
    for bins in ([3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [3.0, 2.0, 2.0, 1.0], [2.0, 2.0], [2.0, np.inf, np.inf]):
        assert differentiable(f, backend="numba")(1.5, a, np.array(bins)) == f(1.5, a, np.array(bins))


@both
def test_sums_and_products_of_bools(backend: str) -> None:
    def f(x: Any, a: Any, b: Any) -> Any:
        both = np.outer(a, b)
        counts = np.bincount(a).sum() + np.bincount(b, weights=x)[1]
        sums = x[0] * (a @ b) + x[1] * a.sum(dtype=bool) + x[2] * a.prod(dtype=bool) + x[0] * (both @ a).sum()
        sums = sums + np.take(x, a) @ x + np.take(np.outer(x, x), b, axis=1)[2, 1]
        return counts + sums + x[1] * both.sum(axis=0, dtype=bool).sum()

    for a in (A, B, A & B & ~A):
        right(f, X, a, B, backend=backend)


@both
def test_signs_of_zeros_and_whole_numbers(backend: str) -> None:
    def f(x: Any, y: Any) -> Any:
        whole = 0.0
        for k in range(y.size):
            if y[k].is_integer():
                whole += x[k]
        return whole + np.sum(np.copysign(x, np.sign(y))) + np.copysign(x[0], np.sign(y[0]))

    for y in ([-0.0, 0.0, np.inf], [np.nan, 2.5, -np.inf], [4.0, -3.0, 1e300]):
        given = np.array(y)
        same(differentiable(f, backend=backend)(X, given), f(X, given))
        same(differentiable(f, backend=backend).value_and_grad(X, given)[0], f(X, given))
