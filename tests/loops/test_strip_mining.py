"""Sums in strips: the same bits, whatever the number of iterations; and loops that stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tests.loops.test_innermost_loops import assert_same_text
from tests.nests_reader import assert_same, lowered_text

R = np.random.default_rng(5)
SIZES = (0, 1, 511, 512, 513, 1500)

TWO = """
def f(x, y, m):
    total = 0.25
    less = 1.5
    last = 0.0
    for i in range(2, m):
        a = np.arctan(x[i])
        b = np.exp2(-a*a)
        total = total + np.sinh(b*y[i])
        y[i] = a*b
        less = less - b*np.arcsinh(b)
        last = a + i
    for j in range(2, m):
        total = total + np.cbrt(np.exp2(np.arctan(x[j])))
    return total, less, last
"""


def two(size: int) -> tuple[Any, ...]:
    return R.normal(size=size + 2), R.normal(size=size + 2), size + 2


def test_sums_keep_every_bit() -> None:
    text = lowered_text(TWO, *two(3))
    assert text.count("terms = np.empty(512)") == 1
    assert text.count("terms_1 = np.empty(512)") == 1
    assert text.count("for start in range(2, m, 512)") == 1
    assert text.count("for start_1 in range(2, m, 512)") == 1
    assert_same_text(TWO, *map(two, SIZES))


@pytest.mark.compiled
def test_compiled() -> None:
    assert_same(TWO, *map(two, SIZES))


LOOP = """
def f(x, y, n):
    s = 0.0
    c = 0.5
    for i in range(1, n):
        t = np.sinh(np.arctan(x[i])*np.exp2(x[i]))
        s = s + t
    return s + c
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s = s + t", "s = s + t*s"),
        ("s = s + t", "s = t - s"),
        ("s = s + t", "s = s + t\n        y[i] = s"),
        ("s = s + t", "s = s + t*c\n        c = c*t"),
        ("s = s + t", "y[i] = y[i - 1] + t\n        s = s + t"),
        ("s = s + t", "y[i] = t\n        s = s + y[n - i]"),
        ("s = s + t", "s = s + t\n        if t > 0.5:\n            s = s + 1.0"),
        ("s = s + t", "s = s + math.log(t)"),
        ("range(1, n)", "range(1, n, 2)"),
        ("range(1, n)", "range(n - 1, 0, -1)"),
        ("range(1, n)", "range(1, 5)"),
        ("np.sinh(np.arctan(x[i])*np.exp2(x[i]))", "np.arctan(x[i])*np.exp2(x[i]) + np.arcsinh(x[i])"),
        ("np.sinh(np.arctan(x[i])*np.exp2(x[i]))", "x[i]*x[i]"),
    ],
)
def test_other_loops_stay(old: str, new: str) -> None:
    text = LOOP.replace(old, new)
    args = R.uniform(0.1, 0.3, size=6), R.normal(size=6), 6
    assert "terms" in lowered_text(LOOP, *args)
    assert "terms" not in lowered_text(text, *args)
    assert_same_text(text, args)


BOTH = """
def f(x, y, n):
    s = 0.0
    for i in range(1, n):
        y[i] = 2.0*x[i] + y[i - 1]
    for i in range(n):
        s = s + np.sinh(np.arctan(x[i])*np.exp2(y[i]))
    return s
"""


def test_one_variable_has_one_type() -> None:
    """An unsigned index does not take the name of a signed counter, or numba would make a float of both."""
    text = lowered_text(BOTH, np.zeros(3), np.zeros(3), 3)
    assert "for i in range(1, n):" in text
    assert "i_1 = np.uint64(start + k)" in text
    assert_same_text(BOTH, (R.normal(size=700), np.zeros(700), 700))


VECTORS = """
def f(x, y, n):
    s = 0.0
    c = 0.5
    for i in range(1, n):
        u = x[i] - y[i]
        r = u*u + 0.25
        s = s + u/(r*math.sqrt(r))
        c = c - (u + y[i - 1]*x[0])/r
        x[i] = u
    return s + c
"""


def test_what_takes_vectors_but_for_sums() -> None:
    args = R.normal(size=6), R.normal(size=6), 6
    assert "s += terms[k]" in lowered_text(VECTORS, *args) and "c -= terms_1[k]" in lowered_text(VECTORS, *args)
    assert_same_text(VECTORS, args, (R.normal(size=1300), R.normal(size=1300), 1300))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x[i] = u", "x[i - 1] = u"),
        ("x[i] = u", "x[0] = u"),
        ("y[i - 1]*x[0]", "y[(2*i) % n]"),
        ("y[i - 1]*x[0]", "y[n - i]"),
        ("u/(r*math.sqrt(r))", "u"),
        ("u = x[i] - y[i]", "u = x[i] - y[i]*c"),
    ],
)
def test_what_takes_no_vectors(old: str, new: str) -> None:
    args = R.normal(size=6), R.normal(size=6), 6
    assert "terms" not in lowered_text(VECTORS.replace(old, new), *args)
    assert_same_text(VECTORS.replace(old, new), args)


def chain(x: np.ndarray, y: np.ndarray) -> float:
    u = np.sin(x) * np.exp(-y * y)
    v = np.tanh(u + x * y)
    return np.sum(u * v + np.sin(v) * y)


@pytest.mark.compiled
def test_values_and_gradients_agree() -> None:
    f = tg.differentiable(chain, wrt=(0, 1))
    for size in (1, 511, 513, 1300):
        x, y = R.normal(size=size), R.normal(size=size)
        value, (x_bar, y_bar) = f.value_and_grad(x, y)
        assert value == f(x, y) == f.jvp((x, y), (y, x))[0]
        step = 1e-30j
        np.testing.assert_allclose(x_bar, _slope(x + step, y), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(y_bar, _slope(x, y + step), rtol=1e-12, atol=1e-14)


def _slope(x: Any, y: Any) -> Any:
    """The derivative of each term by complex steps."""
    u = np.sin(x) * np.exp(-y * y)
    v = np.tanh(u + x * y)
    return (u * v + np.sin(v) * y).imag / 1e-30
