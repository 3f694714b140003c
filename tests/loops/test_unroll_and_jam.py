"""Products and sums of rows that several iterations of a loop take together (`loops/vectorize/unroll_and_jam.py`)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.module import emit
from tapegen.loops.pipeline import lower_to_loops
from tapegen.loops.vectorize.unroll_and_jam import unroll_and_jam
from tapegen.pipeline.artifacts.generated_text import compiled_text
from tests.nests_reader import python_function, read, strict

R = np.random.default_rng(5)
SIZES = (0, 1, 2, 3, 6, 7)


def forward_substitution(a: np.ndarray, b: np.ndarray) -> Any:
    n = b.size
    x = np.zeros(n)
    for i in range(n):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return x


def backward_substitution(a: np.ndarray, b: np.ndarray) -> Any:
    n = b.size
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def from_the_second(a: np.ndarray, b: np.ndarray) -> Any:
    x = np.zeros(a.shape[0])
    for i in range(1, a.shape[0]):
        x[i] = np.sin(a[i] @ b)
        if x[i] < 0.0:
            x[i] = 0.5 * x[i] * x[i]
    return x


def whole_rows(a: np.ndarray, b: np.ndarray) -> Any:
    y = np.zeros(b.size)
    for i in range(b.size):
        y[i] = np.tanh(a[i] @ b)
    return y


def parts_of_rows(a: np.ndarray, b: np.ndarray) -> Any:
    y = np.zeros(b.size)
    for i in range(b.size):
        y[i] = np.tanh(a[i, 1:] @ b[1:]) * b[i]
    return y


def one_row_of_many(a: np.ndarray, b: np.ndarray) -> Any:
    table = np.zeros((2, b.size))
    for i in range(b.size):
        table[1, i] = (b[i] + a[i, :i] @ table[1, :i]) / a[i, i]
    return table


def stores_two(a: np.ndarray, b: np.ndarray) -> Any:
    x = b * 1.0
    for i in range(b.size):
        x[i] = x[i] + a[i, :i] @ x[:i]
        x[0] = x[0] * 0.5 + x[i]
    return x


def stores_into_the_matrix(a: np.ndarray, b: np.ndarray) -> Any:
    rows = a * 1.0
    x = np.zeros(b.size)
    for i in range(b.size):
        x[i] = b[i] + rows[i, :i] @ x[:i]
        rows[b.size - 1, 0] = x[i]
    return x


def every_other(a: np.ndarray, b: np.ndarray) -> Any:
    x = b * 1.0
    for i in range(0, b.size, 2):
        x[i] = x[i] + a[i, :i] @ x[:i]
    return x


def stops(a: np.ndarray, b: np.ndarray) -> Any:
    x = b * 1.0
    for i in range(b.size):
        x[i] = x[i] + a[i, :i] @ x[:i]
        if x[i] > 3.0:
            break
    return x


def bound_of_a_list(a: np.ndarray, b: np.ndarray) -> Any:
    seen = [1.0]
    x = b * 1.0
    for k in range(b.size):
        seen.append(x[k])
    for i in range(len(seen) - 1):
        x[i] = x[i] + a[i, :i] @ x[:i]
        seen.append(x[i])
    return x


def more_than_it_has(a: np.ndarray, b: np.ndarray) -> Any:
    # the vector ends before the counter does
    x = b[: b.size // 2] * 1.0
    total = 0.0
    for i in range(b.size):
        part = x[:i]
        total = total + np.sin(total + part @ part)
    return total


def compiled_tangent(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, Callable[..., Any]]:
    """What numba would get for the tangent of both arguments, and that as Python."""
    program = tg.differentiable(f, backend="numba", wrt=(0, 1), cache=False)._specialise(args, {}).program
    source = compiled_text(program, program.function("jvp"))
    return source.text, build_python(source)


def drawn(n: int) -> tuple[np.ndarray, ...]:
    a, a_dot = R.normal(size=(2, n, n))
    b, b_dot = R.normal(size=(2, n))
    return a + 3.0 * np.eye(n), b, a_dot, b_dot


LOOKING = [forward_substitution, backward_substitution, from_the_second, whole_rows, parts_of_rows, one_row_of_many]
STAYING = [stores_two, stores_into_the_matrix, every_other, stops, bound_of_a_list, more_than_it_has]


@pytest.mark.parametrize("f", LOOKING + STAYING, ids=lambda f: f.__name__)
def test_two_trips_together_give_what_one_by_one_gives(f: Callable[..., Any]) -> None:
    text, func = compiled_tangent(f, drawn(5)[:2])
    assert bool(re.search(r"product\w*_ahead", text)) == (f in LOOKING)
    for n in SIZES:
        a, b, a_dot, b_dot = drawn(n)
        value, tangent = func(a, b, a_dot, b_dot)
        np.testing.assert_allclose(value, f(a, b), rtol=1e-12, atol=1e-13)
        step = 1e-3
        points = [f(a + k * step * a_dot, b + k * step * b_dot) for k in (1.0, -1.0, 2.0, -2.0)]
        differences = (8.0 * (points[0] - points[1]) - (points[2] - points[3])) / (12.0 * step)
        np.testing.assert_allclose(tangent, differences, rtol=1e-6, atol=1e-6)


CHECKS_ITS_ROW = """
def f(a, b, x, y):
    for i in range(x.size):
        if i >= a.shape[0] or i >= b.shape[0] or x.size > a.shape[1] or x.size > b.shape[1] or x.size != y.size:
            raise IndexError("index is out of bounds")
        y[i] = np.dot(a[i, :i], x[:i]) + np.dot(b[i, :i], x[:i])
    return y
"""


def test_checks_of_this_trip_say_nothing_of_the_next_one() -> None:
    a, b = R.normal(size=(2, 3, 4))
    text = emit(lower_to_loops(read(CHECKS_ITS_ROW, (a, b, np.ones(4), np.ones(4))))).text
    assert "products(" in text
    assert "_ahead" not in text


def test_rows_that_are_not_there_are_not_read() -> None:
    _, func = compiled_tangent(forward_substitution, drawn(5)[:2])
    a, b, a_dot, b_dot = drawn(4)
    with pytest.raises(IndexError):
        func(a[:3], b, a_dot[:3], b_dot)
    value, _ = func(a, b[:3], a_dot, b_dot[:3])
    np.testing.assert_allclose(value, forward_substitution(a, b[:3]), rtol=1e-12)


# ---- sums ------------------------------------------------------------------------------------------------------------


def jammed(text: str, *args: Any) -> tuple[str, Callable[..., Any]]:
    """What the pass makes of a program, as text and as Python."""
    source = emit(unroll_and_jam(read(text, args)))
    return source.text, build_python(source)


NEST = """
def f(a, x, n):
    for i in range({outer}):
        s = {init}
        for j in range({inner}):
            s = s - a[i + 2, j + 2] * x[j + {read}]
        x[i + {store}] = s * 0.5
    return x
"""
OUTER = ("n", "n - 1, -1, -1")
INNER = ("n", "1, n", "i", "i + 1", "i + 2", "i - 1", "2, i")


def reads_too_early(outer: str, inner: str, init: str, read_at: int, store: int) -> bool:
    """Whether a row that is added up before its turn reads what iterations before its turn store."""
    rows = list(eval(f"range({outer})", {"n": 9}))
    for first in range(0, len(rows), 4):
        terms = eval(f"range({inner})", {"i": rows[first], "n": 9})
        for later in rows[first + 1 : first + 4]:
            read = {j + read_at for j in terms} | {eval(item, {"i": later}) for item in re.findall(r"x\[(.*)\]", init)}
            if read & {i + store for i in rows[first : rows.index(later)]}:
                return True
    return False


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
def test_sums_ahead_keep_every_dependence(outer: str, inner: str) -> None:
    for read_at, store, init in itertools.product((1, 2, 3), (1, 2, 3), ("0.0", "x[i + 2]")):
        text = NEST.format(outer=outer, inner=inner, init=init, read=read_at, store=store)
        new, func = jammed(text, np.ones((6, 6)), np.ones(6), 3)
        grows = "i" not in inner or outer == "n"
        assert ("% 4" in new) == (grows and not reads_too_early(outer, inner, init, read_at, store)), text
        for n in (0, 2, 5, 9) if "% 4" in new else ():
            a, x = R.normal(size=(n + 4, n + 4)), R.normal(size=n + 4)
            want, got = x.copy(), x.copy()
            python_function(text)(a, want, n)
            func(strict(a), strict(got), n)
            np.testing.assert_array_equal(got, want)


APART = """
def f(a, x, y, n, m):
    for i in range({outer}):
        t = i + 1
        w = x[i] * 2.0
        s = 0.0
        p = y[i]
        for j in range({inner}):
            q = a[i, j] * w
            s = s + q * x[j]
            p = p + a[t, j]
        y[i] = s / p
    return y
"""


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", ["m", "1, m", "t", "2, t"])
def test_rows_have_their_own_scalars(outer: str, inner: str) -> None:
    text = APART.format(outer=outer, inner=inner)
    new, func = jammed(text, np.ones((6, 6)), np.ones(6), np.ones(6), 3, 3)
    assert ("% 4" in new) == (inner in ("m", "1, m") or outer == "n")
    for n in (0, 1, 3, 4, 6, 9):
        a, x, y = R.normal(size=(n + 2, n + 2)), R.normal(size=n + 2), R.normal(size=n + 2)
        want, got = y.copy(), y.copy()
        python_function(text)(a, x, want, n, n // 2)
        func(strict(a), strict(x), got, n, n // 2)
        np.testing.assert_array_equal(got, want)


REFUSED = {
    "stores in the inner loop": "for j in range(n):\n            s = s + a[i, j]\n            x[j] = s",
    "the last value": "for j in range(n):\n            q = a[i, j]\n            s = s + q\n        x[i] = q",
    "other matrix rows are stored": "for j in range(n):\n            s = s + a[i, j]\n        a[n - 1, 0] = s",
    "elementary function": "for j in range(n):\n            s = s + np.exp(a[i, j])\n        x[i] = s",
    "few terms": "for j in range(3):\n            s = s + a[i, j]\n        x[i] = s",
    "leaves": "for j in range(n):\n            s = s + a[i, j]\n        if s > 1.0:\n            break",
}


@pytest.mark.parametrize("inner", REFUSED.values(), ids=REFUSED)
def test_sums_that_stay(inner: str) -> None:
    text = f"def f(a, x, n):\n    for i in range(n):\n        s = 0.0\n        {inner}\n    return x\n"
    new, _ = jammed(text, np.ones((4, 4)), np.ones(4), 4)
    assert "% 4" not in new


CHECKED = """
def f(a, x, n):
    for i in range(n):
        s = 0.0
        {before}
        for j in range(a.shape[1]):
            s = s + a[i, j]
        {after}
        x[i] = s
    return x
"""
CHECK = "if i >= a.shape[0]:\n            raise IndexError('i')"


def test_sums_do_not_read_rows_that_iterations_check_first() -> None:
    args = np.ones((4, 4)), np.ones(4), 4
    assert "% 4" not in jammed(CHECKED.format(before=CHECK, after=""), *args)[0]
    assert "% 4" in jammed(CHECKED.format(before="", after=CHECK), *args)[0]
    within = CHECKED.replace("range(n)", "range(a.shape[0])").format(before=CHECK, after="")
    assert "% 4" in jammed(within, *args)[0]
    same = CHECK.replace("i >= a.shape[0]", "n > a.shape[0]")
    new, func = jammed(CHECKED.format(before=same, after=""), *args)
    assert "% 4" in new
    with pytest.raises(IndexError):
        func(strict(np.ones((5, 2))), np.ones(6), 6)
    np.testing.assert_array_equal(func(strict(np.ones((6, 2))), np.ones(6), 6), np.full(6, 2.0))
