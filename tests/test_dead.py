"""What is computed for nobody leaves the text of the backward sweep."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tapegen import differentiable
from tapegen.ir import build
from tapegen.ir.nodes import Call, Const, Var
from tapegen.ir.types import BOOL, FLOAT, INT


def backward(f: Any, *args: Any, wrt: Any = 0) -> str:
    return str(differentiable(f, wrt=wrt).inspect(*args).backward)


def test_the_last_zero_of_a_buffer_is_not_written() -> None:
    def f(x: float, y: float) -> Any:
        a = np.zeros(2)
        a[0] = x
        a[1] = x * y
        return np.sum(a * a)

    text = backward(f, 1.0, 2.0, wrt=(0, 1))
    assert "a_bar[0] = 0.0" not in text
    assert differentiable(f, wrt=(0, 1)).grad(1.5, 2.0) == (2 * 1.5 * 5.0, 2 * 1.5 * 1.5 * 2.0)


def test_a_zero_that_is_added_to_at_once_is_an_assignment() -> None:
    def f(a: Any, x: float) -> Any:
        for i in range(3):
            a[i] = x * a[i] * a[i]
        return np.sum(a)

    text = backward(f, np.ones(3), 2.0)
    assert "a_bar[i] = 0.0" not in text
    assert "a_bar[i] += " not in text
    gradient = differentiable(f, wrt=0, backend="python").grad(np.array([1.0, 2.0, 3.0]), 2.0)
    np.testing.assert_array_equal(gradient, [4.0, 8.0, 12.0])


def test_a_zero_with_a_view_that_reads_it_in_between_stays() -> None:
    def f(a: Any) -> Any:
        v = a[:2]
        v[0] = a[1] * a[2]
        a[0] = v[0] * v[1] + a[0]
        return np.sum(a) * v[0]

    a = np.array([0.5, 2.0, 3.0])
    gradient = differentiable(f, wrt=0, backend="python").grad(a.copy())
    # with s = a1 a2: (s a1 + s + a1 + a2) (s a1 + s)
    s, a1, a2 = 6.0, 2.0, 3.0
    first, second = s * a1 + s + a1 + a2, s * a1 + s
    by_a1 = (a2 * a1 + s + a2 + 1.0) * second + first * (a2 * a1 + s + a2)
    by_a2 = (a1 * a1 + a1 + 1.0) * second + first * (a1 * a1 + a1)
    np.testing.assert_allclose(gradient, [0.0, by_a1, by_a2])


def test_a_repeated_index_still_adds_every_time() -> None:
    def f(a: Any, index: Any) -> Any:
        a[index] = a[index] * 2.0
        return np.sum(a[index] * np.array([1.0, 10.0, 100.0]))

    a, index = np.array([1.0, 2.0, 3.0]), np.array([0, 2, 0])
    gradient = differentiable(f, wrt=0, backend="python").grad(a, index)
    np.testing.assert_array_equal(gradient, [202.0, 0.0, 20.0])


def test_a_comparison_is_turned_where_it_means_the_same() -> None:
    i, x = Var("i", INT), Var("x", FLOAT)
    turned = {
        (i, operator.eq): operator.ne,
        (i, operator.lt): operator.ge,
        (x, operator.ne): operator.eq,
        (x, operator.lt): operator.not_,  # x may be NaN
    }
    for (var, func), expected in turned.items():
        result = build.not_(Call(func, (var, Const(1)), (), BOOL))
        assert isinstance(result, Call)
        assert result.func is expected
        assert build.not_(result) == Call(func, (var, Const(1)), (), BOOL)


def test_a_sign_in_front_becomes_a_subtraction() -> None:
    def f(a: Any) -> Any:
        slope = a[2] - 2.0 * a[1]
        return slope * slope

    assert "a_bar[1] -= 2.0 * slope_bar" in backward(f, np.ones(3))
