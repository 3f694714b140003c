"""Perfect loop nests in the order of the elements in memory (`loops/locality/interchange.py`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.module import emit
from tapegen.loops.locality.interchange import interchange_loops
from tests.nests_reader import python_function, read, strict

R = np.random.default_rng(8)
A = np.ones((6, 6))


def interchanged(text: str, *args: Any, backward: bool = False) -> tuple[str, Callable[..., Any]]:
    """What the pass makes of a program, as text and as Python."""
    source = emit(interchange_loops(replace(read(text, args), backward=backward)))
    return source.text, build_python(source)


def order(text: str) -> list[str]:
    """The counters of the loops from the outermost to the innermost."""
    return [line.split()[1] for line in text.splitlines() if line.lstrip().startswith("for ")]


NEST = """
def f(a, b, n, m):
    for j in range({over_j}):
        for i in range({over_i}):
            a[i + 1, j + 1] {store} a[i + {down}, j + {right}] * 0.5 + b[i, j]
    return a
"""
UP, DOWN = "{}", "{} - 1, -1, -1"


def is_legal(over_i: str, over_j: str, down: int, right: int) -> bool:
    """Whether iterations that access the same element, one of which writes it, keep their order."""
    steps_i, steps_j = (list(eval(f"range({each})", {"n": 4, "m": 4})) for each in (over_i, over_j))
    before, after = [(i, j) for j in steps_j for i in steps_i], [(i, j) for i in steps_i for j in steps_j]
    return all(
        (before.index(write) < before.index(read)) == (after.index(write) < after.index(read))
        for write, read in itertools.product(before, before)
        if (write[0] + 1, write[1] + 1) == (read[0] + down, read[1] + right)
    )


@pytest.mark.parametrize("over_i", [UP.format("n"), DOWN.format("n")])
@pytest.mark.parametrize("over_j", [UP.format("m"), DOWN.format("m")])
@pytest.mark.parametrize("store", ["=", "+="])
def test_loops_are_interchanged_where_no_dependence_is_reversed(over_i: str, over_j: str, store: str) -> None:
    for down, right in itertools.product((0, 1, 2), (0, 1, 2)):
        text = NEST.format(over_i=over_i, over_j=over_j, store=store, down=down, right=right)
        new, func = interchanged(text, A, A, 4, 4)
        assert order(new) == (["i", "j"] if is_legal(over_i, over_j, down, right) else ["j", "i"]), text
        for n, m in ((0, 3), (3, 0), (1, 4), (5, 3)):
            a, b = R.normal(size=(2, 8, 8))
            want, got = a.copy(), a.copy()
            python_function(text)(want, b, n, m)
            func(strict(got), strict(b), n, m)
            np.testing.assert_array_equal(got, want)


def nest(body: str, front: str = "", around: str = "") -> str:
    lines = [f"            {line}" for line in body.split("; ")]
    before = [f"        {front}"] if front else []
    loops = ["    for j in range(m):", *before, "        for i in range(n):", *lines]
    return "\n".join(["def f(a, b, x, n, m):", *loops, *([f"    {around}"] if around else []), "    return a, x\n"])


TAKEN = {
    "stencil": "a[i + 1, j + 1] = b[i, j + 1] + b[i + 2, j + 1] - 4.0 * b[i + 1, j + 1]",
    "recurrence down the columns": "a[i + 1, j] = a[i, j] * x[j] + b[i, j]",
    "sums of rows": "x[i] += b[i, j]",
    "scalars": "t = b[i, j] * 2.0; k = j + 1; a[i, k] = t * x[i]",
}
LEFT = {
    "rows already": "a[j, i] = b[j, i] * 2.0",
    "a scalar that is carried": "s = s + b[i, j]; a[i, j] = s",
    "another array that may be the same": "a[i, j] = y[i + 1, j]",
    "wavefront": "a[i + 1, j] = a[i, j + 1] * b[i, j]",
    "the same element": "x[0] = b[i, j]",
    "an element that is not known": "a[i, j] = a[int(x[i]), j] + 1.0",
}


@pytest.mark.parametrize("body", TAKEN.values(), ids=TAKEN)
def test_interchanged_nests_do_the_same(body: str) -> None:
    text = nest(body)
    new, func = interchanged(text, A, A, np.ones(6), 4, 4)
    assert order(new) == ["i", "j"]
    for n, m in ((0, 3), (4, 5), (5, 2)):
        a, b, x = R.normal(size=(7, 7)), R.normal(size=(7, 7)), R.normal(size=7)
        want = python_function(text)(a.copy(), b, x.copy(), n, m)
        for one, other in zip(func(strict(a.copy()), strict(b), strict(x.copy()), n, m), want, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_nests_that_stay(body: str) -> None:
    text = nest(body).replace("    for j", "    s = 0.0\n    y = a[1:]\n    for j", 1)
    assert order(interchanged(text, A, A, np.ones(6), 4, 4)[0]) == ["j", "i"]


def test_scalars_of_the_outer_loop_move_unless_the_nest_changes_them() -> None:
    def loops(body: str, front: str, around: str = "") -> list[str]:
        return order(interchanged(nest(body, front, around), A, A, np.ones(6), 4, 4)[0])

    assert loops("x[i] += b[i, j] * t", "t = b[0, j]") == ["i", "j"]
    assert loops("x[i] += b[i, j] * t", "t = x[j]") == ["j", "i"]
    assert loops("x[i] += b[i, j] * t; t = 2.0", "t = b[0, j]") == ["j", "i"]
    assert loops("x[i] += b[i, j] * t", "t = np.exp(b[0, j])") == ["j", "i"]
    assert loops("x[i] += b[i, j] * t", "t = b[0, j]", "x[0] = t") == ["j", "i"]
    assert loops("x[i] += b[i, j]", "", "x[0] = i") == ["j", "i"]


def test_additions_of_a_backward_sweep_have_no_order() -> None:
    text = nest("a[i + 1, j] += b[i, j + 1] * 2.0; a[i, j + 1] += b[i, j + 1]")
    assert order(interchanged(text, A, A, np.ones(6), 4, 4)[0]) == ["j", "i"]
    new, func = interchanged(text, A, A, np.ones(6), 4, 4, backward=True)
    assert order(new) == ["i", "j"]
    a, b, x = R.normal(size=(7, 7)), R.normal(size=(7, 7)), R.normal(size=7)
    want, _ = python_function(text)(a.copy(), b, x, 5, 4)
    np.testing.assert_allclose(func(a, b, x, 5, 4)[0], want, rtol=1e-13)
    reads = nest("a[i + 1, j] += b[i, j + 1] * 2.0; x[i] += a[i, j + 1]")
    assert order(interchanged(reads, A, A, np.ones(6), 4, 4, backward=True)[0]) == ["j", "i"]


BOUNDS = """
def f(a, p, n):
    k = p[1]
    for j in range({bounds}):
        for i in range(n):
            a[i, j] *= 0.5
            {body}
    return a
"""


@pytest.mark.parametrize(
    ("bounds", "body", "expected"),
    [
        ("p[0]", "p[i] = 2", "ji"),
        ("p[0], n", "p[i] = 2", "ji"),
        ("n - 1, p[0], -1", "p[i] = 2", "ji"),
        ("k", "k = i", "ji"),
        ("k", "p[i] = 2", "ij"),
    ],
)
def test_bounds_are_computed_once(bounds: str, body: str, expected: str) -> None:
    """In the new order those of the outer loop are computed again for each row."""
    text = BOUNDS.format(bounds=bounds, body=body)
    new, func = interchanged(text, A, np.ones(6, int), 4)
    assert "".join(order(new)) == expected
    for first in (1, 5):
        a, p = R.normal(size=(6, 6)), np.full(6, first)
        want = python_function(text)(a.copy(), p.copy(), 6)
        np.testing.assert_array_equal(func(strict(a.copy()), strict(p.copy()), 6), want)
