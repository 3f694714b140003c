"""What is computed and never read leaves the text of the backward sweep."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.module import emit
from tapegen.ir import builders, traversal
from tapegen.ir.nodes import Call, Const, Var
from tapegen.ir.types import BOOL, FLOAT, INT, Array
from tapegen.transform.simplify.dead_code import Aliases, drop_trailing, merge_stores
from tests.nests_reader import Outcome, python_function, read


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
        result = builders.not_(Call(func, (var, Const(1)), (), BOOL))
        assert isinstance(result, Call)
        assert result.func is expected
        assert builders.not_(result) == Call(func, (var, Const(1)), (), BOOL)


def test_a_sign_in_front_becomes_a_subtraction() -> None:
    def f(a: Any) -> Any:
        slope = a[2] - 2.0 * a[1]
        return slope * slope

    assert "a_bar[1] -= 2.0 * slope_bar" in backward(f, np.ones(3))


# ---- one pass alone --------------------------------------------------------------------------------------------------


def assert_same_after(transform: Any, text: str, *argument_lists: tuple[Any, ...]) -> None:
    """A block says the same after a pass, to the caller as well, whose arrays are those of the arguments."""
    function = read(text, argument_lists[0])
    *body, last = function.body
    foreign = tuple(frozenset({param}) for param in function.params if isinstance(param.type, Array))
    new = transform(tuple(body), traversal.reads(last), Aliases(tuple(body), foreign))
    func = build_python(emit(replace(function, body=(*new, last))))
    for args in argument_lists:
        ours, theirs = Outcome(func, args), Outcome(python_function(text), args)
        assert (ours.error, ours.value) == (theirs.error, theirs.value)
        for a, b in zip(ours.args, theirs.args, strict=True):
            np.testing.assert_array_equal(a, b)


def joined(block: Any, live_out: Any, aliases: Aliases) -> Any:
    """The first pair of the text is one that is joined."""
    new = merge_stores(block, aliases)
    assert len(new) < len(block)
    return new


JOINED = """
def f(x, y, k):
    x[2] = 0.0
    x[2] += 7.0
    {}
    return k
"""


@pytest.mark.parametrize(
    "lines",
    [
        "x[0] = 0.0; s = x[0]; x[0] += y[0] + s",
        "x[k] = 0.0; k = k + 1; x[k] += y[0]",
        "ids = np.array([0, 0]); x[ids] = 0.0; np.add.at(x, ids, y)",
        "x[0] = 0.0; x[0] += x[0]*2.0 + y[0]",
        "x = np.copy(x); x[0] = 5.0",
        "v = x[1:]; x[1] = 0.0; v[0] = 3.0; x[1] += y[0]",
    ],
)
def test_zeros_that_something_sees_stay(lines: str) -> None:
    text = JOINED.format("\n    ".join(lines.split("; ")))
    assert_same_after(joined, text, (np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0]), 0))


@pytest.mark.parametrize(
    "lines",
    [
        "t = y[0]*2.0\n    if k > 0:\n        s = 1.0\n    else:\n        s = t",
        "t = y[0]*2.0\n    if k > 0:\n        s = t\n    else:\n        s = 1.0",
        "s = 1.0\n    if k > 0:\n        x = np.copy(x)\n    x[0] = 5.0",
        "s = 1.0\n    v = x[1:]\n    v[0] = 5.0",
    ],
)
def test_what_is_read_or_seen_later_stays(lines: str) -> None:
    text = f"def f(x, y, k):\n    {lines}\n    return s\n"
    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0])
    assert_same_after(drop_trailing, text, (x, y, 1), (x, y, 0))


def test_a_loop_whose_values_nobody_reads_raises_as_in_python() -> None:
    def f(x: Any, n: int) -> Any:
        for k in range(n):
            if x[k] > 9.0:
                _ = 1.0
        return np.sum(x * x)

    derived = differentiable(f, backend="python")
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(derived.grad(x, 2), 2 * x)
    for call in (f, derived.grad):
        with pytest.raises(IndexError):
            call(x, 3)
