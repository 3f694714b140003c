"""Loops whose tests change at their ends: the iterations between have none, and all of them are the user's."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.ir import traversal
from tapegen.loops.parallel import outlining
from tests.chunk_orders import checked_chunks
from tests.grown.loop_texts import uncompiled
from tests.nests_reader import assert_same, lowered_text

R = np.random.default_rng(23)


def wrapped(x: Any, c: Any) -> Any:
    n = x.size
    y = np.empty(n)
    for i in range(n):
        y[i] = (x[(i + 1) % n] - x[(i - 2) % n]) * x[i - 1] + c * x[i]
    return np.sum(y * y)


def rolled(x: Any, c: Any) -> Any:
    y = (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) + c * np.roll(x, 5)
    return np.sum(y * y)


def rolled_rows(x: Any, c: Any) -> Any:
    y = np.reshape(x[: x.size // 2 * 2], (-1, 2))
    return np.sum((np.roll(y, 3, axis=0) - np.roll(y, (1, -1), axis=(0, 1))) ** 2 * c)


def guarded(x: Any, c: Any) -> Any:
    n = x.size
    s = 0.0
    for i in range(n):
        if i == 0:
            left = x[n - 1]
        elif i < 2 or not i > 1:
            left = x[0] * c
        else:
            left = x[i - 2]
        if i + 1 >= n:
            right = x[0]
        else:
            right = x[i + 1]
        s += (right - left) * x[i]
    return s


def summed_downwards(x: Any, c: Any) -> Any:
    """Iterations that depend on each other, and a value that is read after the loop."""
    s = c
    last = 0.0
    for i in range(x.size - 1, -1, -1):
        if i < x.size - 1:
            s = 0.5 * s * x[i + 1]
        last = x[i - 1] * s
    return s + last


def in_rows(x: Any, c: Any) -> Any:
    m = x.size // 2
    a = np.reshape(x[: 2 * m], (2, m))
    s = 0.0
    for i in range(2):
        for j in range(m):
            s += (a[(i + 1) % 2, j] - c * a[i, (j - 1) % m]) * a[i, (j + 1) % m]
    return s


def around(x: Any, c: Any) -> Any:
    """Rows that are the same for all iterations of the inner loop."""
    m = x.size // 2
    a = np.reshape(x[: 2 * m], (2, m))
    b = np.empty((2, m))
    for i in range(2):
        for j in range(m):
            b[i, j] = a[i, j] + c * (a[i - 1, j] + a[i, j - 1] + a[i, (j + 1) % m] - 3.0 * a[i, j])
    return np.sum(b * b)


PROGRAMS = (wrapped, rolled, rolled_rows, guarded, summed_downwards, in_rows, around)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_gradients_are_those_of_the_loop(function: Any) -> None:
    sample = R.random(9)
    with uncompiled():
        ours = tg.differentiable(function, wrt=(0, 1), backend="numba", cache=False)
        ours.value_and_grad(sample, 0.7)
        with tg.debug(disable=("split_index_sets", "distribute_loops")):
            plain = tg.differentiable(function, wrt=(0, 1), backend="numba", cache=False)
            plain.value_and_grad(sample, 0.7)
        for n in (*range(2, 12), 37):
            x = R.random(n)
            value, parts = ours.value_and_grad(x, 0.7)
            want, expected = plain.value_and_grad(x, 0.7)
            assert value == want == pytest.approx(function(x, 0.7), rel=1e-13)
            for part, right in zip(parts, expected, strict=True):
                np.testing.assert_allclose(part, right, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("function", [wrapped, rolled], ids=lambda function: function.__name__)
def test_the_loops_between_have_no_remainders(function: Any) -> None:
    text = str(tg.differentiable(function, wrt=(0, 1)).inspect(R.random(9), 0.7).compiled)
    text = re.sub(r" *#.*\n", "", text)
    between = [part for part in text.split("for ") if re.match(r"\w+ in range\(\d, \w+ - 1\)", part)]
    assert between
    assert not any("%" in part or " else " in part for part in between)


STAYS = """
def f(x, y, m):
    for i in range(x.shape[0]):
        if i == m:
            break
        y[i] = x[i - 1]
    for i in range(x.shape[0]):
        if i < m:
            y[i] += x[i]
    for i in range(6):
        if i > 0:
            y[i] += x[i - 1]
    return m
"""

SPLIT = """
def f(x, y, m):
    s = 0.0
    for i in range(m, x.shape[0] - 1):
        if i > m:
            s = s*0.5 + x[i - 1]
        if i != x.shape[0] - 2 and i >= m + 2:
            y[i] = s
        else:
            y[i] = -s
    for i in range(x.shape[0] - 1, m - 1, -1):
        k = i - 1 if i - 1 >= m else i
        y[i] = y[i] + x[k]*y[k]
    for i in range(x.shape[0]):
        if i - 3 < 0 or x.shape[0] - i <= 2:
            y[i] = 0.0
        if x[i] > 0.5:
            y[i] += y[(i - 3) % x.shape[0]]
    return s
"""


def test_other_loops_stay() -> None:
    text = lowered_text(STAYS, R.random(8), R.random(8), 3)
    assert text.count("for ") == 3
    assert_same(STAYS, *[(R.random(n), R.random(n), m) for n in (6, 9) for m in (0, 3, 20)])


def test_loops_between_any_ends() -> None:
    assert lowered_text(SPLIT, R.random(8), R.random(8), 0).count("for ") > 6
    assert_same(SPLIT, *[(R.random(n), R.random(n), m) for n in (2, 3, 4, 5, 9, 20) for m in (0, 1, 3)])


def test_long_functions_do_not_grow_without_end() -> None:
    loops = "    for i in range(x.shape[0]):\n        if i > 0:\n            y[i] += x[i - 1]\n"
    few, many = (lowered_text(f"def f(x, y):\n{loops * n}    return y", R.random(8), R.random(8)) for n in (10, 300))
    assert few.count("for ") == 2 * 10
    assert 300 + 50 < many.count("for ") < 300 + 250


def added_from_the_second(v: Any, a: Any) -> Any:
    v = v.copy()
    for i in range(1, a.shape[1] - 1):
        for j in range(a.shape[0]):
            if j > 1:
                v[j] += np.tanh(a[j, i])
    return np.sum(v)


def test_chunks_do_not_share_elements_of_split_loops() -> None:
    """Analyses tell the statements of the parts apart: in the first iterations of j nothing is added."""
    v, a = R.random(5), R.random((5, 6))
    derived = tg.differentiable(added_from_the_second, wrt=(0, 1), backend="numba", parallel=True, cache=False)
    with uncompiled(), checked_chunks():
        value, (v_bar, a_bar) = derived.value_and_grad(v, a)
    assert value == pytest.approx(added_from_the_second(v, a))
    np.testing.assert_array_equal(v_bar, 1.0)
    expected = 1 - np.tanh(a) ** 2
    expected[:2], expected[:, [0, -1]] = 0.0, 0.0
    np.testing.assert_allclose(a_bar, expected)


def added_by_pairs(v: Any, a: Any) -> Any:
    v = v.copy()
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            if i != j:
                v[max(i, j)] += a[i] * a[j] * np.tanh(a[j])
    return np.sum(v * v)


def test_statements_of_pairs_are_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops before and after the excluded iteration share statements, which the dependence test tells apart."""
    given: list[Any] = []
    analyzed: list[Any] = []
    analyze, separate = outlining._Outlining, outlining._with_own_statements
    monkeypatch.setattr(outlining, "_Outlining", lambda function: analyzed.append(function.body) or analyze(function))
    monkeypatch.setattr(outlining, "_with_own_statements", lambda block: given.append(block) or separate(block))
    v, a = R.random(8), R.random(8)
    derived = tg.differentiable(added_by_pairs, wrt=(0, 1), backend="numba", parallel=True, cache=False)
    with uncompiled(), checked_chunks():
        value, gradients = derived.value_and_grad(v, a)
    expected = tg.differentiable(added_by_pairs, wrt=(0, 1), backend="python").value_and_grad(v, a)
    assert value == pytest.approx(expected[0])
    for found, wanted in zip(gradients, expected[1], strict=True):
        np.testing.assert_allclose(found, wanted)
    assert any(map(_repeats_statements, given))
    assert analyzed and not any(map(_repeats_statements, analyzed))


def _repeats_statements(block: Any) -> bool:
    found = traversal.statements(block)
    return len(set(map(id, found))) < len(found)
