"""Columns that a loop comes back to are rows while it runs, where nothing else of their arrays is touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.ir.passes import without_passes
from tapegen.pipeline.artifacts.generated_text import compiled_text
from tests.loops.test_innermost_loops import assert_same_text
from tests.nests_reader import lowered_text

R = np.random.default_rng(29)


def arguments(m: int, n: int) -> tuple[Any, ...]:
    return R.random((m, n)), R.random((m, n)), m, n


def packed(text: str, *args: Any) -> str:
    """The text of a program whose nests are not interchanged, so that columns remain."""
    with without_passes(frozenset({"interchange_loops"})):
        return lowered_text(text, *args)


WALKED = """
def f(a, q, m, n):
    for k in range(n):
        for j in range(k + 1, n):
            t = 0.0
            for i in range(m):
                t += q[i, k]*a[i, j]
            for i in range(m):
                q[i, k] -= 0.25*t
                a[i, j] -= q[i, k]*t
    return a + q
"""

COUNTS_DOWN = """
def f(a, q, m, n):
    for k in range(n - 1, -1, -1):
        for j in range(n - 1, k, -1):
            for i in range(m):
                a[i, j] += q[i, k]*0.5
    return a
"""

MADE_INSIDE = """
def f(a, q, m, n):
    for k in range(n):
        b = np.zeros((k + m, 3))
        for j in range(n):
            for i in range(m):
                b[i, 1] += a[i, j]
        q[0, k] += b[0, 1] + b[m - 1, 1]
    return q
"""

OTHER_ELEMENTS = """
def f(a, q, m, n):
    for k in range(n):
        for j in range(n):
            for i in range(m):
                a[i, j] += q[i, k]
            q[0, j] = a[0, j]
    return a + q
"""

TWO_COLUMNS = """
def f(a, q, m, n):
    for k in range(n - 1):
        for j in range(n):
            for i in range(m - 1, -1, -1):
                a[i, j] += q[i, k]*q[i, k + 1]
    return a
"""

ANOTHER_ON_EACH_TRIP = """
def f(a, q, m, n):
    for j in range(n):
        for i in range(m):
            a[i, j] += q[i, n - 1 - j]
    for j in range(3):
        for i in range(m):
            a[i, j] += q[i, 1]
    k = 0
    for j in range(n):
        k = (k + 2) % n
        for i in range(m):
            a[i, j] -= q[i, k]
    for k in range(m):
        for j in range(n):
            for i in range(n):
                a[k, i] += q[k, i]*a[k, j]
    return a
"""

BRANCHES = """
def f(a, q, m, n):
    for j in range(n):
        if a[0, j] > 0.5:
            for i in range(m):
                a[i, j] += q[i, 3]
    return a
"""


def test_a_column_is_a_row() -> None:
    text = lowered_text(WALKED, *arguments(5, 4))
    assert "q_column = np.empty(" in text and "t += q_column[i] * a[i, j]" in text
    assert "a[i, j] - q_column[i] * t" in text and "a_column" not in text
    assert_same_text(WALKED, arguments(5, 4), arguments(3, 2), arguments(2, 1), arguments(0, 3))


def test_a_loop_that_counts_down() -> None:
    assert "q_column[i]" in packed(COUNTS_DOWN, *arguments(5, 4))
    assert_same_text(COUNTS_DOWN, arguments(5, 4), arguments(3, 2), arguments(2, 1))


def test_several_columns_of_an_array() -> None:
    text = packed(TWO_COLUMNS, *arguments(5, 4))
    assert "q_column_1[i] * q_column[i]" in text and "else" not in text
    assert_same_text(TWO_COLUMNS, arguments(5, 4), arguments(3, 2), arguments(2, 1), arguments(0, 3))


def test_room_is_made_where_the_array_is() -> None:
    text = packed(MADE_INSIDE, *arguments(5, 4))
    assert text.index("for k in") < text.index("b_column = np.empty(")
    assert_same_text(MADE_INSIDE, arguments(5, 4), arguments(3, 2), arguments(2, 3))


@pytest.mark.parametrize("text", [OTHER_ELEMENTS, ANOTHER_ON_EACH_TRIP, BRANCHES])
def test_what_stays(text: str) -> None:
    args, (a, q, m, n) = arguments(5, 4), arguments(3, 3)
    assert_same_text(text, args, (0.5 * a, q, m, n))  # the last column need not exist
    assert "_column" not in packed(text, *args)


def orthonormal(a0: np.ndarray) -> Any:
    a = a0.copy()
    m, n = a.shape
    q = np.zeros((m, n))
    r = np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.sqrt(np.sum(a[:, k] * a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.sum(q[:, k] * a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return np.sum(q * q * q) + np.sum(r * r)


@pytest.mark.compiled
def test_a_compiled_product_of_a_hessian() -> None:
    a, direction = R.random((7, 5)), R.random((7, 5))
    gradient = tg.grad(orthonormal)
    program = tg.differentiable(gradient)._specialise((a,), {}).program
    text = compiled_text(program, program.function("jvp")).text
    assert "q_dot_column[i]" in text and "q_bar_column[i]" in text and "q_bar_dot_column[i]" in text
    ours = tg.hvp(orthonormal, (a,), (direction,))
    np.testing.assert_allclose(ours, tg.hvp(orthonormal, (a,), (direction,), backend="python"), rtol=1e-9, atol=1e-12)
