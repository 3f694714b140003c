"""Zeros of new arrays are made by the loops that come to them first, and not at all where these store what they add."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.loops.test_innermost_loops import assert_same_text
from tests.nests_reader import assert_same, lowered_text

R = np.random.default_rng(29)

STORED = """
def f(x, n, k):
    a = np.zeros((n, n))
    for i in range(n):
        a[i, i] += x[i]
        for j in range(i):
            a[i, j] += x[j]*x[i]
    return a
"""

CLIPPED = """
def f(x, n, k):
    a = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        for j in range(i - k):
            a[i, j] += x[j]*x[i]
        for j in range(n):
            a[i, j] += x[i]
    return a
"""

KEPT = [
    # an element of the part has been added to before
    """
    a[i, 0] += x[i]
    for j in range(i):
        a[i, j] += x[j]
    """,
    # the part is read before
    """
    s += a[i, k]
    for j in range(n):
        a[i, j] += x[j]
    """,
    # the loop comes to one element several times
    """
    for j in range(n):
        a[i, k] += x[j]
    """,
    # it reads another element of the row
    """
    for j in range(n - 1):
        a[i, j] += x[j] + a[i, j + 1]
    """,
    # it may leave elements out
    """
    for j in range(n):
        if x[j] > 0.6:
            a[i, j] += x[j]
    """,
    # it starts later
    """
    for j in range(1, n):
        a[i, j] += x[j]
    """,
    # it ends where something in the iteration says
    """
    k = k % 2 + 1
    for j in range(k):
        a[i, j] += x[j]
    """,
]


def arguments(n: int, k: int) -> tuple[Any, ...]:
    return R.random(n), n, k


def test_what_a_loop_adds_to_zeros_is_stored() -> None:
    text = lowered_text(STORED, *arguments(4, 1))
    assert "a[i, j] = x[j] * x[i]" in text
    assert "a = np.zeros(" in text and "a[i, i] += x[i]" in text
    text = lowered_text(CLIPPED, *arguments(4, 1))
    assert "a[i, j] = x[j] * x[i]" in text
    assert "a = np.zeros(" in text
    text = lowered_text(CLIPPED.replace("range(i - k)", "range(k)"), *arguments(4, 1))
    assert "a[i, j] = x[j] * x[i]" in text and "a = np.empty(" in text
    assert "for k_1 in range(max(k, 0), a.shape[1]):" in text


@pytest.mark.compiled
@pytest.mark.parametrize("text", [STORED, CLIPPED, CLIPPED.replace("range(i - k)", "range(k)")])
def test_stored_and_filled_is_all(text: str) -> None:
    assert_same(text, *(arguments(n, k) for n in (5, 0, 1, 2) for k in (1, 0, 3)))


@pytest.mark.parametrize("body", KEPT)
def test_what_is_touched_otherwise_is_filled_before(body: str) -> None:
    inner = "\n".join(" " * 4 + line for line in body.splitlines())
    program = (
        f"def f(x, n, k):\n    s = 0.0\n    a = np.zeros((n, n))\n    for i in range(n):{inner}\n    return a, s\n"
    )
    text = lowered_text(program, *arguments(4, 1))
    assert "in range(a.shape[1]):" in text or "np.zeros" in text
    assert "+= " in text
    program = program.replace("return a, s", "x[0] += s\n    return a")
    assert_same_text(program, *(arguments(n, k) for n in (5, 4) for k in (1, 0)))


@pytest.mark.parametrize("text", [STORED, CLIPPED, CLIPPED.replace("range(i - k)", "range(k)")])
def test_nothing_is_read_before_it_is_stored(text: str) -> None:
    assert_same_text(text, *(arguments(n, k) for n in (5, 2, 1, 0) for k in (1, 0)))


OTHER_LOOPS = [
    # it may be left before its last row
    """
    for i in range(n):
        if x[i] > 0.4:
            break
        for j in range(n):
            a[i, j] += x[j]
    """,
    # it begins with a later row
    """
    for i in range(1, n):
        for j in range(n):
            a[i, j] += x[j]
    """,
    # it comes to another row first
    """
    for i in range(n):
        for j in range(n):
            a[n - 1 - i, j] += x[j]
        a[i, 0] += x[i]
    """,
    # it reads another row first
    """
    for i in range(n):
        for j in range(n):
            a[i, j] += x[j] + a[n - 1, j]
    """,
    # what is added is made of what was there
    """
    b = np.zeros(n)
    for i in range(n):
        b[i] += x[i] + 0.5*b[i]
    a[0] = b
    """,
]


@pytest.mark.parametrize("body", OTHER_LOOPS)
def test_loops_that_do_not_come_to_each_row_once(body: str) -> None:
    program = f"def f(x, n, k):\n    a = np.zeros((n, n)){body}\n    return a\n"
    x = np.array([0.2, 0.3, 0.7, 0.1, 0.9])
    assert_same_text(program, (x, 5, 1), (x[:2], 2, 1), (x[:1], 1, 1))


def test_rows_behind_the_last_trip_are_counted_from_the_start() -> None:
    program = """
def f(x, n, k):
    a = np.zeros((n, n))
    for i in range(min(k, n)):
        for j in range(n):
            a[i, j] += x[j]
    return a
"""
    assert "in range(max(min(k, n), 0), a.shape[0]):" in lowered_text(program, *arguments(4, 1))
    assert_same_text(program, *(arguments(4, k) for k in (2, 0, 7, -1)))


IN_BRANCHES = """
def f(x, s, n):
    y = np.zeros(x.shape[0])
    if n > 3:
        for i in range(n - 3):
            y[i + 2] += s*x[i]
        y[0] += s
        y[2] += x[1]
    else:
        for i in range(n):
            y[i] += x[i]*y[0]
    z = np.zeros(x.shape[0] + 1)
    if s > 0.5:
        for i in range(x.shape[0] + 1):
            z[i] += s
    w = np.zeros(x.shape[0])
    if s > 0.25:
        for i in range(n - 1):
            w[i + n] += x[i]
    return y, z, w
"""


def test_branches_store_where_they_begin_with_a_loop_over_the_elements() -> None:
    text = lowered_text(IN_BRANCHES, R.random(9), 0.6, 4)
    assert "y[i + 2] = s * x[i]" in text
    assert "z[i] = s" in text
    assert_same(IN_BRANCHES, *[(R.random(9), s, n) for s in (0.1, 0.3, 0.6) for n in (0, 1, 3, 4, 5)])
