"""Zeros of new arrays are made by the loops that come to them first, and not at all where these store what they add."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
    # it ends where something in the trip says
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
