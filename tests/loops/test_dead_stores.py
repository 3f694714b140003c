"""What compiled text leaves out because nothing reads it, and what must stay."""

from __future__ import annotations

import numpy as np
import pytest

import tapegen as tg
from tests.grown.loop_texts import uncompiled
from tests.loops.test_innermost_loops import assert_same_text
from tests.nests_reader import lowered_text

A = np.array([0.5, -1.5, 2.0])


def makes_an_array_of_a_list(x, a):
    items = []
    for i in range(len(a)):
        items.append(x * a[i])
    made = np.array(items)  # noqa: F841  (that is the point)
    return x * x + a[0]


def looks_at_sizes(x, a):
    filled = np.empty(len(a))
    for i in range(len(a)):
        filled[i] = a[i] * x
    return x * x * filled.size


def raises_in_what_nobody_reads(x, a):
    filled = np.empty(len(a))
    for i in range(len(a) + 1):
        filled[i] = a[i] * x
    return x * x


def adds_up_for_nobody(x, a):
    total, largest = 0.0, np.zeros(2)
    for i in range(len(a)):
        total = 0.5 * total + a[i]
        largest[1] = largest[0] + total
        largest[0] = largest[1]
    return x * x


@pytest.mark.parametrize(
    ("func", "value", "slope"),
    [(makes_an_array_of_a_list, 9.5, 6.0), (looks_at_sizes, 27.0, 18.0), (adds_up_for_nobody, 9.0, 6.0)],
)
def test_values_stay(func, value, slope):
    assert tg.value_and_grad(func, backend="numba")(3.0, A) == (value, slope)


def test_only_the_size_of_an_array_is_kept():
    text = str(tg.differentiable(looks_at_sizes).inspect(3.0, A).compiled)
    assert "filled[" not in text


def test_what_is_only_read_to_make_more_of_it_goes():
    text = str(tg.differentiable(adds_up_for_nobody).inspect(3.0, A).compiled)
    assert not any(name in text for name in ("total =", "largest", "for "))


def test_errors_stay():
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        tg.grad(raises_in_what_nobody_reads, backend="numba")(3.0, A)


def made_anew(x, steps):
    """The cotangent of `x` takes the place of its copy, and what `d` is reset to is never read."""
    for _ in range(steps):
        d = np.zeros(len(x))
        d[1:] = x[1:] - x[:-1]
        x = x + 0.5 * d
    return np.sum(x * x)


def also_in_a_list(x, steps):
    """The list has the arrays before each step."""
    states = [x * 1.0]
    for _ in range(steps):
        x = x + 0.5 * x[::-1]
        states.append(x)
    return np.sum(states[1] * states[-1])


def also_returned(x, steps):
    first = x * 2.0
    y = first
    for _ in range(steps):
        y = y + 0.5 * y[::-1]
    return np.sum(first * y)


@pytest.mark.parametrize("func", [made_anew, also_in_a_list, also_returned])
@pytest.mark.parametrize("steps", [1, 3])
def test_copies_and_last_stores_go_where_nothing_reads_what_they_replace(func, steps):
    x = np.array([1.0, -0.0, 2.0, -3.0])
    with uncompiled():
        ours = tg.differentiable(func, backend="numba", cache=False).value_and_grad(x, steps)
    want = tg.differentiable(func, backend="python").value_and_grad(x, steps)
    assert ours[0] == pytest.approx(want[0], rel=1e-14)
    np.testing.assert_allclose(ours[1], want[1], rtol=1e-14)


def test_no_copy_of_an_array_that_is_replaced_by_it():
    with uncompiled():
        text = str(tg.differentiable(made_anew).inspect(A, 2).compiled).split("backward sweep")[1]
    assert ".copy()" not in text and "d_bar[i + 1] = 0.0" not in text and "= 0.0" not in text
    with tg.debug(disable="eliminate_dead_stores"), uncompiled():
        text = str(tg.differentiable(made_anew).inspect(A, 2).compiled).split("backward sweep")[1]
    assert ".copy()" in text and "] = 0.0" in text


STORED_LAST = """
def f(x, y, n):
    for k in range(n):
        a = np.empty(n)
        for i in range(n):
            a[i] = x[i] * 2.0
        y[k] = a[k]
        for i in range(n):
            a[i] = 0.0
            y[i] += x[k]
        b = np.empty(n)
        v = b[1:]
        for i in range(n):
            b[i] = x[i]
        for i in range(n - 1):
            y[i] += v[i]
        b[0] = 1.0
        y[0] += {reads}
    return y
"""


@pytest.mark.parametrize(("reads", "stays"), [("x[0]", False), ("a[0]", True)])
def test_stores_that_no_later_statement_reads(reads, stays):
    program = STORED_LAST.format(reads=reads)
    text = lowered_text(program, np.ones(4), np.ones(4), 4)
    assert ("a[i] = 0.0" in text) is stays
    assert_same_text(program, (np.arange(4.0), np.ones(4), 4), (np.ones(1), np.ones(1), 1))
