"""Elements that an iteration has stored are scalars where it reads them, unless another store may be between."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapegen as tg
from tests.loops import test_innermost_loops
from tests.nests_reader import lowered_text as lowered

ROUNDING = ("vectorize_math", "strip_mine_reductions")  # their functions round otherwise than NumPy's
R = np.random.default_rng(29)


def arguments(n: int) -> tuple[Any, ...]:
    return R.random(n), R.random(n), np.array([0.0, -0.0, np.nan, np.inf, *R.random(n)])[:n], n


def lowered_text(text: str, *args: Any) -> str:
    with tg.debug(disable=ROUNDING):
        return lowered(text, *args)


def assert_same_text(text: str, *argument_lists: tuple[Any, ...]) -> None:
    with tg.debug(disable=ROUNDING):
        test_innermost_loops.assert_same_text(text, *argument_lists)


FORWARDED = """
def f(x, y, z, n):
    s = 0.0
    for k in range(n):
        y[k] = np.exp(z[k]) * 2.0
        x[k] = y[k] * y[k]
        y[k] += x[k]
        s = s + y[k]
        z[k] = -0.0
        y[k] *= z[k]
    return s
"""

MAY_BE_ANOTHER = """
def f(x, y, z, n):
    v = x[1:]
    for k in range(n - 1):
        x[k] = np.exp(z[k]) * 2.0
        v[k // 2] = z[k] + 1.0
        y[k] = x[k]
    j = 0
    for k in range(n - 1):
        y[j] = np.exp(z[k]) * 2.0
        j = k + 1
        x[k] = y[j]
    for k in range(n):
        y[k] = np.exp(z[k]) * 2.0
        y[n - 1 - k] = 3.0
        x[k] = y[k]
    return x
"""


def test_elements_that_an_iteration_has_stored_are_scalars() -> None:
    text = lowered_text(FORWARDED, *arguments(5))
    assert "x[k] = x_here" in text and "s += y_here" in text
    assert_same_text(FORWARDED, arguments(7), arguments(1), arguments(0))


def test_not_where_another_store_may_be_between() -> None:
    assert "_here" not in lowered_text(MAY_BE_ANOTHER, *arguments(6))
    assert_same_text(MAY_BE_ANOTHER, arguments(6), arguments(7), arguments(1))


def test_another_element_between() -> None:
    text = """
def f(x, y, z, n):
    for k in range(n - 1):
        x[k] = np.exp(z[k]) * 2.0
        x[k + 1] = z[k] + 1.0
        y[k] = x[k]
    return x
"""
    assert "y[k] = x_here" in lowered_text(text, *arguments(6))
    assert_same_text(text, arguments(6), arguments(1))


def test_a_scalar_that_changes_after_it_was_stored() -> None:
    text = """
def f(x, y, z, n):
    s = 1.0
    for k in range(n):
        s = s + np.exp(z[k])
        x[k] = s
        s = s * 0.5
        y[k] = x[k] + s
    return y
"""
    assert_same_text(text, arguments(6), arguments(2))


def test_loops_without_functions_are_left_to_llvm() -> None:
    text = """
def f(x, y, n):
    for k in range(n):
        x[k] = y[k] * 2.0
        y[k] = x[k] + 1.0
    return x
"""
    assert "_here" not in lowered_text(text, R.random(4), R.random(4), 4)


def test_values_are_rounded_as_the_array_rounds_them() -> None:
    text = """
def f(x, y, n):
    for k in range(n):
        x[k] = np.exp(y[k]) * 1.1
        y[k] = x[k] * 3.0
        x[k] = 2**24 * k + 1
        y[k] -= x[k]
    return y
"""  # an array converts the integers, and the floats of another precision
    x, y = R.random(9).astype(np.float32), R.random(9)
    assert "y_here" not in lowered_text(text, x, y, 9)
    assert_same_text(text, (x, y, 9))
    single = y.astype(np.float32)
    assert "x_here = np.float32(" in lowered_text(text, x, single, 9)
    assert_same_text(text, (x, single, 9))


def test_an_iteration_that_raises_has_stored() -> None:
    text = """
def f(x, y, z, n):
    for k in range(n):
        x[k] = np.exp(y[k])
        if x[k] > 2.0:
            raise ValueError("no")
        y[k] = x[k]
    return x
"""
    assert_same_text(text, arguments(9), (np.zeros(3), np.array([0.25, 0.75, 0.25]), np.zeros(3), 3))


def stored_products(x: np.ndarray, y: np.ndarray) -> float:
    u = np.empty(len(x))
    v = np.empty(len(x))
    for i in range(len(x)):
        u[i] = np.exp(-x[i]) * y[i]
        v[i] = np.tanh(u[i])
    for i in range(len(x)):
        u[i] = np.cos(v[i])
    return u @ v


def test_vector_functions_of_what_vector_functions_computed() -> None:
    """The range of `tanh` is known, so that its cosine needs no test of the argument."""
    args = np.linspace(-2.0, 2.0, 9), np.linspace(0.5, 3.0, 9)
    with tg.debug(disable={"forward_stores"}):
        plain = tg.differentiable(stored_products)
        want = plain.grad(*args)
        assert "vcos" not in plain.inspect(*args).compiled
    function = tg.differentiable(stored_products)
    assert "vcos" in function.inspect(*args).compiled
    np.testing.assert_allclose(function.grad(*args), want, rtol=1e-13)
