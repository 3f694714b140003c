"""`wrt_out`: functions that return nothing, and write their results into arrays of the caller."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument

A, B = np.linspace(0.1, 0.5, 5), np.linspace(1.0, 2.0, 5)


def recurrence(a, b, n=5):
    for i in range(1, n):
        a[i] = a[i - 1] * b[i] + a[i] ** 2


def blend(out, *parts):
    out[:] = 0.0
    for part in parts:
        out += part * part


def doubled(a):
    return a * 2.0


def by_hand(a: Any, b: Any, a_bar: Any) -> tuple[Any, Any]:
    """The transposed steps of `recurrence`, last to first."""
    held = [a.copy()]
    for i in range(1, a.size):
        after = held[-1].copy()
        after[i] = after[i - 1] * b[i] + after[i] ** 2
        held.append(after)
    bar, b_bar = a_bar.copy(), np.zeros_like(b)
    for i in range(a.size - 1, 0, -1):
        before, step = held[i - 1], bar[i]
        bar[i] = 2.0 * before[i] * step
        bar[i - 1] += b[i] * step
        b_bar[i] += before[i - 1] * step
    return bar, b_bar


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_what_an_argument_holds_at_the_end_is_the_value(backend: Any) -> None:
    a, expected = A.copy(), A.copy()
    recurrence(expected, B)
    value, pullback = tg.vjp(recurrence, a, B, 5, wrt=("a", "b"), wrt_out="a", backend=backend)
    np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal(a, expected)  # as in plain Python
    for a_bar in (np.ones(5), np.arange(5.0)):
        np.testing.assert_allclose(pullback(a_bar), by_hand(A, B, a_bar), rtol=1e-14)


def test_several_arrays_are_a_tuple() -> None:
    (a, b), pullback = tg.vjp(recurrence, A.copy(), B, wrt=1, wrt_out=("a", "b"), backend="python")
    assert b is B and a is not B
    np.testing.assert_allclose(pullback((np.ones(5), 2.0 * np.ones(5))), by_hand(A, B, np.ones(5))[1] + 2.0, rtol=1e-14)


def test_arguments_that_are_collected() -> None:
    value, pullback = tg.vjp(blend, np.empty(2), A[:2], B[:2], wrt="parts", wrt_out="out", backend="python")
    np.testing.assert_array_equal(value, A[:2] ** 2 + B[:2] ** 2)
    np.testing.assert_array_equal(pullback(np.ones(2)), (2.0 * A[:2], 2.0 * B[:2]))


@pytest.mark.parametrize(
    ("function", "name", "text"), [(recurrence, "n", "no argument"), (doubled, "a", "return these")]
)
def test_what_is_no_outcome_is_refused(function: Any, name: str, text: str) -> None:
    with pytest.raises(BadArgument, match=f"(?i){text}"):
        tg.vjp(function, *((A, B) if function is recurrence else (A,)), wrt_out=name)


def test_inside_a_differentiated_function_it_is_refused() -> None:
    @tg.differentiable(backend="python")
    def outer(b):
        _, pullback = tg.vjp(recurrence, np.zeros(5), b, wrt=1, wrt_out="a")
        return np.sum(pullback(np.ones(5)))

    with pytest.raises(BadArgument, match="wrt_out in a differentiated function"):
        outer.grad(B)
