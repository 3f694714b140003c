"""Inner products that share vectors: one pass over these, and products that stay apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tests.loops.test_innermost_loops import assert_same_text
from tests.nests_reader import assert_same, lowered_text

R = np.random.default_rng(6)
SIZES = (3, 2, 7, 40)

ROWS = """
def f(a, d, x, y, n):
    s = 0.0
    for i in range(n):
        u = a[i, :i]
        v = x[:i]
        p = np.dot(u, v)
        s = s + p * np.cos(np.dot(d[i, :i], v) + np.dot(u, y[:i])) + np.dot(u, v)
        x[i] = p
    return s
"""


def rows(n: int) -> tuple[Any, ...]:
    return R.normal(size=(n, n)), R.normal(size=(n, n)), R.normal(size=n), R.normal(size=n), n


def test_one_pass() -> None:
    text = lowered_text(ROWS, *rows(3))
    assert '"""a @ b, c @ b, a @ d."""' in text
    assert text.count(" = products(a[i, :i], x[:i], d[i, :i], y[:i])") == 1
    assert "np.dot" not in text
    assert "u =" not in text


@pytest.mark.compiled
def test_compiled() -> None:
    assert_same(ROWS, *map(rows, SIZES))


APART = """
def f(a, b, c, t):
    p = np.dot(a, b)
    q = np.dot(a, c)
    return p + q
"""


@pytest.mark.parametrize(
    "between",
    [
        "c[0] = p",
        "a[1] = p",
        "if t > 0.0:\n        b[0] = t",
        "c = a.copy()",
        "for k in range(3):\n        a[k] = p",
    ],
)
def test_what_changes_in_between_is_read_after_it(between: str) -> None:
    text = APART.replace("    q =", f"    {between}\n    q =")
    given = (*(R.normal(size=3) for _ in range(3)), 0.5)
    assert "products" not in lowered_text(text, *given)
    assert "products" in lowered_text(APART, *given)


@pytest.mark.parametrize(
    "change",
    [
        ("np.dot(a, c)", "(np.dot(a, c) if t > 0.0 else 0.0)"),
        ("np.dot(a, c)", "np.dot(c, c)"),
    ],
)
def test_apart(change: tuple[str, str]) -> None:
    given = (*(R.normal(size=3) for _ in range(3)), 0.5)
    assert "products" not in lowered_text(APART.replace(*change), *given)


STORED_BETWEEN = """
def f(a, b, n):
    c = np.zeros(3)
    d = np.dot(a, c)
    p = np.dot(a, b)
    c[0] = p
    q = np.dot(a, c)
    return d + p + q
"""

ANOTHER_PART = """
def f(a, b, n):
    s = 0.0
    for i in range(n):
        k = i
        u = a[:k]
        v = b[:k]
        k = k + 1
        s = s + np.dot(u, v)*np.dot(u, u)
    return s
"""


@pytest.mark.parametrize("text", [STORED_BETWEEN, ANOTHER_PART])
def test_products_are_of_what_the_arrays_hold_there(text: str) -> None:
    a, b = (R.integers(-5, 6, size=3).astype(float) for _ in range(2))
    assert "products" in lowered_text(text, a, b, 3)
    assert_same_text(text, (a, b, 3))


def test_single_precision_is_added_up_in_single_precision() -> None:
    given = [R.normal(size=3).astype(np.float32) for _ in range(3)]
    text = lowered_text(APART, *given, 0.5)
    assert "products(" in text and "total_0 = np.float32(0.0)" in text
    assert "products" not in lowered_text(APART, given[0], R.normal(size=3), given[2], 0.5)


def quotient(a, b, c):  # type: ignore[no-untyped-def]
    return (a @ b) / (a @ c)


@pytest.mark.compiled
def test_errors_are_those_of_the_program() -> None:
    f = tg.differentiable(quotient, wrt=(0, 1, 2), cache=False)
    a, b, c = R.normal(size=(3, 5))
    value, gradient = f.value_and_grad(a, b, c)
    text = f.inspect(a, b, c).compiled
    assert text.count('fastmath={"contract", "reassoc"}') == 1
    assert text.count("product, product_1 = products(a, c, b)") == 1
    assert value == pytest.approx(quotient(a, b, c), rel=1e-14)
    np.testing.assert_allclose(gradient[1], a / (a @ c), rtol=1e-13)
    with pytest.raises(ValueError, match="mismatch"):
        f.value_and_grad(a, b[:3], c)


def triangular(low, right):  # type: ignore[no-untyped-def]
    x = np.zeros_like(right)
    for i in range(right.size):
        x[i] = (right[i] - low[i, :i] @ x[:i]) / low[i, i]
    return x


@pytest.mark.compiled
def test_tangent_of_a_solver() -> None:
    f = tg.differentiable(triangular, wrt=(0, 1), cache=False)
    low, low_dot = np.tril(R.normal(size=(2, 30, 30))) / 30
    low += np.eye(30)
    right, right_dot = R.normal(size=(2, 30))
    x, x_dot = f.jvp((low, right), (low_dot, right_dot))
    np.testing.assert_allclose(x, np.linalg.solve(low, right), rtol=1e-12)
    np.testing.assert_allclose(x_dot, np.linalg.solve(low, right_dot - low_dot @ x), rtol=1e-12)


def rows_times_vector(a: np.ndarray, x: np.ndarray) -> Any:
    total = x @ x
    for i in range(a.shape[0]):
        total += np.exp(a[i] @ x)
    return total


def test_a_single_product_in_a_loop_calls_no_library() -> None:
    a, x = np.random.default_rng(1).normal(size=(2, 5, 5))
    inspection = tg.differentiable(rows_times_vector, wrt=(0, 1)).inspect(a, x[0])
    text = str(inspection.stages["fuse_dot_products"])
    assert text.count("np.dot(") == 1  # outside of the loop
    assert " products(" in text
