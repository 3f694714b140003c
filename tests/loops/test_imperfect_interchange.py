"""Iterations that touch nothing of each other are taken side by side where that walks along rows instead of down
columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.ir import traversal
from tapegen.ir.nodes import Function
from tapegen.loops.pipeline import lower_to_loops
from tests.loops.test_innermost_loops import assert_same_text
from tests.nests_reader import lowered_text, read
from tests.oracle import numerical_gradient

R = np.random.default_rng(31)


def arguments(m: int, n: int) -> tuple[Any, ...]:
    return R.random((m, n)), R.random((m, n)), R.random(m), m, n


SUMS = """
def f(a, b, x, m, n):
    for k in range(n):
        h = m - 1
        w = b[0, k]*0.5
        t = 0.0
        for i in range(h):
            u = x[i]*x[i]
            a[i, k] += w*u
            t += b[i, k]*u
        a[m - 1, k] -= t*w
    return a
"""

SEVERAL_LOOPS = """
def f(a, b, x, m, n):
    for k in range(n - 1, -1, -1):
        t = 0.0
        for i in range(m):
            t = t*0.5 + a[i, k]
        t = t + b[0, k]
        for i in range(m - 1, -1, -1):
            v = a[i, k]*x[i]
            a[i, k] = v - t
            t += v*v
        b[m - 1, k] = t
    return a
"""

ONE_CHECK = """
def f(a, b, x, m, n):
    c = np.zeros((m, n))
    for k in range(n):
        if b[0, k] > 0.999:
            raise ValueError("too large")
        for i in range(m):
            c[i, k] += b[i, k]*x[i]
    return c
"""

ONLY_INNER = """
def f(a, b, x, m, n):
    for k in range(n):
        t = x[0]
        for i in range(m):
            a[i, k] += t*x[i]
            t += b[i, k]
    return a
"""

MEETS = """
def f(a, b, x, m, n):
    for k in range(n - 1):
        for i in range(m):
            a[i, k] += a[i, k + 1]*x[i]
    for k in range(n):
        for i in range(m):
            a[i, 0] += b[i, k]
    for k in range(n):
        for i in range(1, m):
            b[i, k] += b[i - 1, k]*x[0]
            x[i] += b[i, k]
    return a + b
"""

GOES_ON = """
def f(a, b, x, m, n):
    t = 0.0
    for k in range(n):
        for i in range(m):
            t += x[i]
            a[i, k] += t
    for k in range(n):
        s = x[0]
        for i in range(m):
            b[i, k] += s*x[i]
    x[0] = s
    h = 1
    for k in range(n):
        for i in range(h):
            b[i, k] += x[i]
        h = m
    t = 3.0
    for k in range(n):
        for i in range(m):
            t = a[i, k]*x[i]
            a[i, k] += t
        b[0, k] = t
    return a + b
"""

OTHER_ENDS = """
def f(a, b, x, m, n):
    for k in range(n):
        for i in range(k % 2, m):
            a[i, k] += x[i]
    for k in range(1, n):
        for i in range(m):
            a[i, k] += x[i]
    for k in range(n):
        for i in range(m):
            a[i, n - 1 - k] += x[i]
    for k in range(4):
        for i in range(m):
            a[i, k] += x[i]
    return a
"""

TWO_ERRORS = """
def f(a, b, x, m, n):
    for k in range(n):
        if b[0, k] > 0.999:
            raise ValueError("too large")
        for i in range(m):
            a[i, k] += b[i, k]*x[i]
    c = np.zeros((m, n))
    for k in range(n):
        if b[0, k] > 0.999:
            raise ValueError("too large")
        for i in range(m):
            c[i, k] += b[i, k]*x[i]
        if b[1, k] > 0.999:
            raise KeyError("too large")
    return c
"""

SIZES = [arguments(*sizes) for sizes in ((5, 9), (3, 8), (4, 7), (1, 12), (6, 5))]


def inside_out(text: str) -> bool:
    return ">= 8" in lowered_text(text, *arguments(5, 9))


@pytest.mark.parametrize("text", [SUMS, SEVERAL_LOOPS, ONE_CHECK])
def test_side_by_side(text: str) -> None:
    assert inside_out(text)
    assert_same_text(text, *SIZES)


def test_numbers_that_last_have_rows() -> None:
    text = lowered_text(SUMS, *arguments(5, 9))
    assert "t_row = np.empty(" in text and "w_row[k] * u" in text and "u_row" not in text and "h_row" not in text
    assert text.index("u = x[i] * x[i]") < text.index("a[i, k] += w_row[k] * u")


def test_no_more_trips_than_room() -> None:
    """Without an iteration of the inner loop nothing says that there are as many columns as trips."""
    a, b, x, _, _ = arguments(5, 9)
    assert inside_out(ONLY_INNER)
    assert_same_text(ONLY_INNER, *SIZES, (a, b, x, 0, 40), (a, b, x, -3, 40), (a, b, x, 3, -2))


def test_an_error_comes_as_it_came() -> None:
    a, b, x, m, n = arguments(5, 9)
    b[0, 4] = 1.0
    assert_same_text(ONE_CHECK, (a, b, x, m, n))


@pytest.mark.parametrize("text", [MEETS, GOES_ON, OTHER_ENDS, TWO_ERRORS])
def test_what_stays(text: str) -> None:
    assert not inside_out(text)
    assert_same_text(text, *SIZES[:2])


def products_with_columns(a: np.ndarray, x: np.ndarray) -> Any:
    y = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            y[: i + 1] += x[k] * a[i, k] * a[: i + 1, k]
    return np.sum(y * y * y)


@pytest.mark.compiled
def test_a_compiled_gradient_and_a_product_of_a_hessian() -> None:
    a, x = R.random((6, 9)), R.random(9)
    ours = tg.differentiable(products_with_columns, wrt=(0, 1))
    assert ">= 8" in ours.inspect(a, x).compiled
    estimate = numerical_gradient(products_with_columns, (a, x), paths=[(0,), (1,)])
    for position, part in enumerate(ours.grad(a, x)):
        np.testing.assert_allclose(part, estimate.value[(position,)], rtol=1e-7)
    tangents = R.random((6, 9)), R.random(9)
    product = tg.hvp(products_with_columns, (a, x), tangents)
    for found, wanted in zip(product, tg.hvp(products_with_columns, (a, x), tangents, backend="python"), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11)


PLAIN_ROWS = """
def f(a, b, x, m, n):
    for k in range(n):
        for i in range(m):
            a[i, k] = x[i]
        t = b[0, k]
        for i in range(m):
            a[i, k] += t
    return a
"""


def test_both_versions_have_statements_of_their_own() -> None:
    """Later passes know statements by their identity."""
    for text in (PLAIN_ROWS, SUMS, SEVERAL_LOOPS):

        def check(name: str, function: Function) -> None:
            found = traversal.statements(function.body)
            assert len(set(map(id, found))) == len(found), name

        lower_to_loops(read(text, SIZES[0]), watch=check)
