"""Elements that innermost loops come back to are numbers while these run, where no other element may be the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.loops.test_innermost_loops import assert_same_text
from tests.nests_reader import lowered_text

R = np.random.default_rng(23)


def arguments(n: int) -> tuple[Any, ...]:
    return R.random(n), R.random((n, n)) + n * np.eye(n), n


HELD = """
def f(x, m, n):
    for i in range(n):
        for j in range(i):
            for k in range(j):
                m[i, j] -= m[i, k]*m[j, k]
            m[i, j] /= m[j, j]
        for k in range(i):
            m[i, i] -= m[i, k]*m[i, k]
    for k in range(n - 1, 0, -1):
        x[0] += x[k]*0.5
    for i in range(n):
        for k in range(i + 1, n):
            m[k, i] += m[i, i]*x[i]
            m[i, k] -= m[i, i]
    return m
"""

MEETS = """
def f(x, m, n):
    for k in range(n):
        x[0] += x[k]*0.5
    for i in range(n):
        for k in range(i + 1):
            m[i, k] += m[i, i]*0.5
    for i in range(n):
        for k in range(n):
            m[i, k] -= m[k, i]*m[0, 0]
    for k in range(1, n):
        j = k % 3
        x[1] += x[j]
    v = x[1:]
    for k in range(n - 1):
        x[1] += v[k]*0.25
    c = 0
    for k in range(n):
        c = (c + 2) % n
        x[c] += 1.0
    for k in range(n):
        x[n - 1 - k] += x[n - 1]*0.5
    return m
"""

IN_TURN = """
def f(x, m, n):
    for k in range(1, n):
        x[0] = x[0]*0.5 + x[k]
        m[0, 0] += x[0]
        x[0] += m[0, 0]*m[0, k]
    return x[0]
"""


def test_held() -> None:
    text = lowered_text(HELD, *arguments(5))
    assert "m_here -= m[i, k] * m[j, k]" in text
    assert "x_here += x[k] * 0.5" in text
    assert text.count("] = m_here") == 2  # what is only read is not stored
    assert "m[i, i] * x" not in text  # read in front of the loop that stores other elements
    assert_same_text(HELD, arguments(5), arguments(2), arguments(1), arguments(0))


def test_not_held_where_elements_may_be_the_same() -> None:
    text = lowered_text(MEETS, *arguments(6))
    assert "_here" not in text
    assert_same_text(MEETS, arguments(6), arguments(7))


def test_order_within_a_trip() -> None:
    assert "_here" in lowered_text(IN_TURN, *arguments(5))
    assert_same_text(IN_TURN, arguments(5), arguments(2))


def test_integers_become_floats_as_in_an_array() -> None:
    text = """
def f(x, y, n):
    for k in range(1, n):
        x[0] = 2**20*k
        y[k] = x[0]*x[0]*x[0]
        x[0] += k
    return y
"""
    assert "x_here = float(" in lowered_text(text, R.random(3), R.random(5), 5)
    assert_same_text(text, (R.random(3), R.random(5), 5))


def test_no_trip_touches_nothing() -> None:
    """An element that no iteration asks for need not exist."""
    text = """
def f(x, y, n):
    for k in range(n):
        x[5] += y[k]
    return x
"""
    assert_same_text(text, (R.random(6), R.random(4), 4), (R.random(3), R.random(4), 0), (R.random(3), R.random(4), 2))


def test_elements_are_stored_where_a_trip_raises() -> None:
    text = """
def f(x, y, n):
    for k in range(n):
        if y[k] > 2.0:
            raise ValueError("no")
        x[0] += y[k]
    return x
"""
    y = np.array([0.5, 1.0, 3.0, 1.0])
    assert_same_text(text, (R.random(2), y, 2), (R.random(2), y, 4))


def test_a_loop_that_never_runs() -> None:
    text = """
def f(x, y, n):
    for k in range(3, 1):
        x[5] += y[k]
    return x
"""
    assert_same_text(text, (R.random(6), R.random(4), 4), (R.random(3), R.random(4), 4))


FIRST_STORED = """
def f(x, m, n):
    for i in range(n):
        m[i, 0] = x[i] * 2.0
        m[i, 0] = 1.0
        for k in range(1, n):
            m[i, 0] *= m[i, k]
        x[i] = 0.0
        for k in range({length}):
            x[i] += m[i, k] * m[k, i]
    return m
"""


def test_what_is_stored_before_the_loop_is_the_scalar() -> None:
    for length in ("n", "n - 1", "i"):
        program = FIRST_STORED.format(length=length)
        text = lowered_text(program, *arguments(5))
        assert "m_here = 1.0" in text and "x_here = 0.0" in text
        assert "m[i, 0] = 1.0" not in text and "x[i] = 0.0" not in text
        assert_same_text(program, arguments(5), arguments(1), arguments(0))


ONLY_STORED_BEFORE = """
def f(x, y, m, n):
    for i in range(n):
        m[i, 0] = 0.5
        m[i, 0] = 2.0
        for k in range(y.shape[0]):
            m[i, 0] += y[y.shape[0] - 1]
            y[y.shape[0] - 1] = m[i, 0] * 0.25
    return m
"""


def test_what_is_stored_before_the_loop_stays_without_an_iteration() -> None:
    """The last element of y exists where the loop runs: it is loaded in a branch."""
    cases = [(R.random(4), R.random(size), R.random((4, 4)), 4) for size in (3, 1, 0)]
    text = lowered_text(ONLY_STORED_BEFORE, *cases[0])
    assert "m[i, 0] = 2.0" in text and "if " in text
    assert_same_text(ONLY_STORED_BEFORE, *cases)


WITHIN = """
def f(x, m, n):
    for i in range({rows}):
        for k in range(m.shape[1] - 1):
            m[i, 0] += m[i, k + 1] * 0.5
    return m
"""


def test_no_branch_where_the_element_is_there_anyway() -> None:
    assert "if 0 <" not in lowered_text(WITHIN.replace("m.shape[1] - 1", "n").format(rows="n"), *arguments(5))
    maybe = WITHIN.format(rows="m.shape[0]")
    assert "> 0" in lowered_text(maybe, *arguments(5)) or "0 <" in lowered_text(maybe, *arguments(5))
    for program in (maybe, WITHIN.format(rows="n")):
        assert_same_text(program, arguments(5), (np.ones(3), np.ones((3, 0)), 3), (np.ones(3), np.ones((3, 1)), 3))
