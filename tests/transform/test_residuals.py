"""What the backward sweep reads of arrays that are overwritten: kept as it was, and once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable
from tests.sources import define


def reads_twice(a: np.ndarray, w: np.ndarray) -> float:
    a = a.copy()
    total = 0.0
    for _ in range(3):
        p = a * w[0]
        q = a * w[1]
        a[:] = p * q
        total += (a * w[0]).sum()
        a[0] = 1.0
        total += (a * w[1]).sum()
        a *= 0.5
    return total


def rebinds(a: np.ndarray, w: np.ndarray) -> float:
    b = a * 1.0
    total = 0.0
    for k in range(4):
        total += (b * w[0]).sum()
        b = a * total if k == 1 else b
        total += (b * w[1]).sum()
        b[k % 2] += total
        total += (b * w[1]).sum()
    return total


A, W = np.array([0.3, -0.7, 1.2]), np.array([0.8, -1.1])


def test_what_two_statements_read_unchanged_is_kept_once() -> None:
    func = differentiable(reads_twice, wrt=(0, 1), backend="python")
    # before `p` and `q`, after `a[:]`, after `a[0]`
    assert "recorded:               a_1_kept, a_1_kept_1, a_1_kept_2\n" in func.inspect(A, W).joint
    check_grads(func, A, W)


def test_a_name_for_another_array_is_kept_anew() -> None:
    check_grads(differentiable(rebinds, wrt=(0, 1), backend="python"), 0.1 * A, 0.1 * W)


def reads_views(a: np.ndarray, w: np.ndarray) -> float:
    a = a.copy()
    total = 0.0
    for k in range(2):
        p = a[k : k + 2] * w[0]
        q = a[k : k + 2] * w[1]
        a[k : k + 2] = p * q
        total += a.sum()
    return total


def moves_views(a: np.ndarray, w: np.ndarray) -> float:
    a = a.copy()
    total = 0.0
    k = 0
    while k < 2:
        first = a[k : k + 2]
        k += 1
        p = first * w[0]
        q = a[k : k + 2] * w[1] * p[: a[k : k + 2].size]
        total += (p * p).sum() + (q * q).sum()
        a[:] = a * total
    return total


def test_two_views_of_the_same_part_are_kept_once() -> None:
    func = differentiable(reads_views, wrt=(0, 1), backend="python")
    assert "recorded:               a_1_kept\n" in func.inspect(A, W).joint
    check_grads(func, A, W)


def test_views_that_are_spelled_alike_may_be_of_other_parts() -> None:
    check_grads(differentiable(moves_views, wrt=(0, 1), backend="python"), 0.3 * A, 0.3 * W)


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.compiled)])
def test_recorded_bools_count_as_pythons(backend: Any) -> None:
    """On a tape they are NumPy's, where `True + True` is True, `~True` is False and `True - True` an error."""

    def f(a: np.ndarray, x: float) -> float:
        n = 0.0
        for i in range(a.size):
            k = True if a[i] > 0.1 else False  # noqa: SIM210
            m = a[i] > 0.1 and x > 0.0
            n = n + (k + k) * x + (k - True) * x * x + ~k * x + (k * k + k * k) * x + m * x
        return n

    a = np.array([1.0, -1.0, 2.0])
    found = differentiable(f, wrt=1, backend=backend)
    value, gradient = found.value_and_grad(a, 1.5)
    assert value == f(a, 1.5)
    np.testing.assert_allclose(gradient, (f(a, 1.5 + 1e-6) - f(a, 1.5 - 1e-6)) / 2e-6, rtol=1e-8)


@pytest.mark.parametrize(("trips", "size"), [("20", 20), ("20, 0, -3", 7), ("64", 64), ("65", 64), ("n", 64)])
def test_a_loop_that_may_end_early_has_tapes_for_all_its_trips_if_these_are_few(trips: str, size: int) -> None:
    source = f"""
import numpy as np

def root(x, tol, n):
    y = x
    for _ in range({trips}):
        step = (np.sin(y) - 0.3 * x) / np.cos(y)
        y = y - step
        if abs(step) < tol:
            break
    return y * y
"""
    root: Any = define(source, "root")
    for tol in (1e-9, 0.0):  # no iteration is the last one
        text = differentiable(root, backend="python").inspect(0.7, tol, 70).joint
        assert f"np.empty({size})" in text
        grows = trips in ("65", "n")
        assert ("np.concatenate" in text) == grows
        slope = (root(0.701, tol, 70) - root(0.699, tol, 70)) / 0.002
        assert differentiable(root, backend="python").grad(0.7, tol, 70) == pytest.approx(slope, rel=1e-5)


def turned(v: np.ndarray) -> np.ndarray:
    t = v * 1.5
    t **= 2
    return np.einsum("ij->ji", t)


def test_generated_text_leaves_the_cotangent_that_it_is_given() -> None:
    """The cotangent of the operand may be a view of that of the result (`np.einsum` of one operand)."""
    v, given = np.array([[1.9, 0.7], [0.4, -1.1]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    namespace: dict[str, Any] = {}
    exec(str(differentiable(turned, backend="python").inspect(v).backward), namespace)
    result_bar = given.copy()
    found = namespace["turned_pullback"](t_kept=1.5 * v, result_bar=result_bar)
    np.testing.assert_allclose(found, 4.5 * v * given.T, rtol=1e-14)
    np.testing.assert_array_equal(result_bar, given)
