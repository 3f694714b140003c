"""Inner loops: what lasts stands in front of them, they count up where that changes nothing, and divide seldom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tests.nests_reader import Outcome, assert_same, lowered_text, python_function, uncompiled

R = np.random.default_rng(11)


def assert_same_text(text: str, *argument_lists: tuple[Any, ...]) -> None:
    """The loops, run by CPython, do what the program does: to the bit, in their order of additions too."""
    func = uncompiled(text, argument_lists[0])
    for args in argument_lists:
        ours, theirs = Outcome(func, args), Outcome(python_function(text), args)
        assert ours.error is theirs.error, args
        for a, b in zip(ours.args, theirs.args, strict=True):
            np.testing.assert_array_equal(a, b)
        if theirs.value is not None:
            np.testing.assert_array_equal(np.ravel(ours.value), np.ravel(theirs.value))


COUNTS_DOWN = """
def f(a, b, m, n):
    for k in range(n - 1, -1, -1):
        a[k] = b[k]*2.0
    for i in range(n - 1, -1, -1):
        for k in range(i - 1, -1, -1):
            m[k, i] += a[k]*m[i, i]
            m[i, k] += b[k]
    for k in range(n - 2, 0, -1):
        t = b[k] + 1.0
        b[k] = t*t
    return a
"""

KEEPS_ORDER = """
def f(a, b, m, n):
    for k in range(n - 2, -1, -1):
        a[k] += a[k + 1]*0.5
    for k in range(n - 1, 0, -1):
        b[k] = b[k - 1]
    s = 0.0
    for k in range(n - 1, -1, -1):
        s = s*0.5 + a[k]
    for k in range(n - 1, -1, -1):
        a[0] += b[k]*0.1
    for k in range(n - 1, -1, -1):
        b[(k*k) % n] = a[k]
    for k in range(n - 1, -1, -1):
        j = n - 1 - k
        m[j, 0] = m[k, 0] + 1.0
    for i in range(1, n):
        for k in range(i, -1, -1):
            m[i, k] += m[k, 1]
    v = a[1:]
    w = a[:-1]
    for k in range(n - 2, -1, -1):
        v[k] = w[k]
    for k in range(n - 1, -1, -1):
        s = s + b[k]
    u = 0.0
    for k in range(n - 1, -1, -1):
        u = 2.0*b[k]
        a[k] = u
    return s*k + u
"""


def arguments(n: int) -> tuple[Any, ...]:
    return R.random(n), R.random(n), R.random((n, n)), n


def test_loops_count_up_where_trips_are_apart() -> None:
    text = lowered_text(COUNTS_DOWN, *arguments(5))
    assert text.count("-1, -1)") == 1  # the loop around the second
    assert_same_text(COUNTS_DOWN, arguments(5), arguments(2), arguments(0))


def test_loops_keep_their_order_where_it_matters() -> None:
    text = lowered_text(KEEPS_ORDER, *arguments(5))
    assert text.count(", -1)") == 10
    assert_same_text(KEEPS_ORDER, arguments(5), arguments(2), arguments(7))


LASTS = """
def f(m, x, n):
    for i in range(n):
        m[i, i] = m[i, i] + 1.0
        for k in range(i):
            t = 2.0*m[i, i]
            m[i, k] += t
            m[k, i] -= t*x[k]
    return m
"""

VARIES = """
def f(m, x, n):
    for i in range(n):
        m[i, i] = m[i, i] + 1.0
        for k in range(i + 1):
            t = 2.0*m[i, i]
            m[i, k] += t
        for k in range(i):
            u = m[k, k]
            m[k, i] += u
        v = m[i]
        for k in range(n):
            w = m[i, 0]*2.0
            v[k] += w
        for k in range(i):
            y = x[i + k]*0.5
            x[i + k + 1] = y
    return m
"""


def test_what_lasts_stands_in_front() -> None:
    args = (R.random((5, 5)), R.random(5), 5)
    lines = [line.strip() for line in lowered_text(LASTS, *args).splitlines()]
    assert lines.index("t = 2.0 * m[i, i]") < lines.index("for k in range(i):")
    assert_same_text(LASTS, args, (R.random((1, 1)), R.random(1), 1))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def test_what_varies_stays() -> None:
    args = (R.random((5, 5)), R.random(12), 5)
    lines = lowered_text(VARIES, *args).splitlines()
    for name in "tuwy":
        (where,) = [k for k, line in enumerate(lines) if line.strip().startswith(f"{name} = ")]
        around = [line for line in lines[:where] if _depth(line) < _depth(lines[where])]
        assert around[-1].strip().startswith("for k in"), name
    assert_same_text(VARIES, args, (R.random((1, 1)), R.random(12), 1))


AROUND = """
def f(x, y, n):
    size = x.shape[0]
    for i in range(size):
        y[i] += x[(i + 1) % size]*x[(i - 2) % size] + x[(i + 1) % size]
    for i in range(size - 1, -1, -1):
        y[i] += x[(3 + i) % size]
        if i % size > 1:
            y[i] += x[i % size]
    for i in range(-4, 3):
        for j in range(2):
            y[j] += x[(j + 1) % n]*x[(i + 1) % n]
        n = n + i % 2
    k = 0
    for i in range(2):
        k = i - 5
        y[i] += x[k % n]
    return y
"""


def test_remainders_of_counters_are_compared_first() -> None:
    args = (R.random(6), R.random(6), 3)
    with tg.debug(disable=("split_index_sets",)):
        text = lowered_text(AROUND, *args)
    assert "i - 2 if 0 <= i - 2 and i - 2 < size else (i - 2) % size" in text
    assert "i + 1 if i + 1 < size else (i + 1) % size" in text
    assert text.count("(i + 1) % size") == 1
    assert "i + 1 if 0 <= i + 1 and i + 1 < n else (i + 1) % n" in text
    assert "= k % n" in text
    assert_same_text(AROUND, args, (R.random(6), R.random(6), 1), (R.random(6), R.random(6), 6))


QUOTIENTS = """
def f(x, y, a, b):
    z = ops.strong_mul(x, 1.0/y) + ops.strong_mul(x, y)
    z[0] += ops.strong_mul(a, 1.0/b)
    return z
"""


def test_divisors_are_chosen_in_loops() -> None:
    """A number that is 0 is so whatever it is divided by; others are infinite or NaN as before."""
    x, y = (np.ravel(part) for part in np.meshgrid(*2 * [[0.0, -0.0, 1.0, -4.0, np.inf, np.nan]]))
    text = lowered_text(QUOTIENTS, x, y, 0.0, 1.0)
    assert text.count("weight / (1.0 if weight == 0.0 else y[i])") == 1
    assert text.count("!= 0.0 else 0.0") == 2  # a product, and what is in no loop
    assert_same_text(QUOTIENTS, (x, y, 0.0, 1.0), (x, y, 2.0, 4.0))


@pytest.mark.compiled
def test_compiled() -> None:
    assert_same(COUNTS_DOWN, arguments(40), arguments(3))
    assert_same(KEEPS_ORDER, arguments(40), arguments(3))
    assert_same(VARIES, (R.random((9, 9)), R.random(20), 9))
    # numba's own bounds checks stay silent for the divisor that makes no index
    assert_same(AROUND, (R.random(6), R.random(6), 3), (R.random(6), R.random(6), -3))


TWICE = """
def f(x, n):
    s = 0.0
    for i in range(n):
        v = x[i]
        s = s + math.sin(v)*math.cos(v)
        if v > 0.5:
            v = v*3.0
            s = s + math.sqrt(v) + math.sqrt(v)
        s = s + math.sqrt(v)
    return s
"""


def test_a_condition_is_looked_at_once() -> None:
    args = (R.random(4) + 0.1, 4)
    text = lowered_text(TWICE, *args)
    assert text.count("math.isinf(v)") == 1
    assert text.count("v < 0.0") == 2
    wrong, infinite = args[0].copy(), args[0].copy()
    wrong[2], infinite[1] = -1.0, np.inf
    assert_same_text(TWICE, args, (wrong, 4), (infinite, 4))


def packed(w: np.ndarray, x: np.ndarray, start: int) -> float:
    total = 0.0
    k = start
    for i in range(x.size):
        row = x[i]
        for j in range(i):
            row += w[k] * x[j]
            k += 1
        total += row * row
    return total


def from_zero(w: np.ndarray, x: np.ndarray) -> float:
    return packed(w, x, 0)


def test_places_that_count_up_from_the_start() -> None:
    """What the forward sweep shows of integers holds where they are derived from the iteration."""
    w, x = R.normal(size=10), R.normal(size=5)
    text = tg.differentiable(from_zero, wrt=(0, 1)).inspect(w, x).compiled
    backward = str(text).split("backward sweep")[1]
    assert "k = i * (i - 1) // 2" in backward and "< 0" not in backward and "for j in range(i):" in backward
    text = tg.differentiable(packed, wrt=(0, 1)).inspect(w, x, 0).compiled
    backward = str(text).split("backward sweep")[1]
    assert (
        "k = start + i * (i - 1) // 2" in backward
        and "if k_1 < 0" in backward
        and "for j in range(i - 1, -1, -1):" in backward
    )


@pytest.mark.compiled
@pytest.mark.parametrize("start", [0, -3, -10])
def test_places_that_are_negative_at_first(start: int) -> None:
    w, x = R.normal(size=12), R.normal(size=5)
    f = tg.differentiable(packed if start else from_zero, wrt=(0, 1))
    more = (start,) if start else ()
    value, gradient = f.value_and_grad(w, x, *more)
    assert value == pytest.approx(packed(w, x, start), rel=1e-14)
    for got, at in zip(gradient, (w, x), strict=True):
        for k in range(at.size):
            step = np.zeros(at.size)
            step[k] = 1e-5
            up, down = ((packed(w + s, x, start) if at is w else packed(w, x + s, start)) for s in (step, -step))
            assert got[k] == pytest.approx((up - down) / 2e-5, rel=1e-7, abs=1e-8)
