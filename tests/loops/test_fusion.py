"""Loops put together: fewer nests and arrays, the same numbers, wherever elements allow it and nowhere else."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math

import numpy as np
import pytest

from tapegen import differentiable, grad, hvp, jvp
from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.module import emit
from tapegen.loops.locality.fusion import without_repetitions
from tapegen.loops.pipeline import lower_to_loops
from tapegen.pipeline.artifacts.generated_text import compiled_text, readable_text
from tests import nests_reader
from tests.loops.test_innermost_loops import assert_same_text
from tests.nests_reader import assert_same, lowered_text, python_function

R = np.random.default_rng(5)


def vectors(count: int, size: int) -> tuple[np.ndarray, ...]:
    return tuple(R.random(size) + 0.2 for _ in range(count))


CHAIN = """
def f(x, y):
    a = np.arctan(x)
    b = np.exp2(-y)
    c = a*b
    d = c + x
    return np.sum(c*d)
"""

ORDER = """
def f(x, y):
    a = x*2.0
    b = a[1:] + a[:-1]
    s = 0.0
    for i in range(x.shape[0]):
        s = s + x[i]
    for i in range(x.shape[0]):
        y[i] = s*y[i]
    for i in range(x.shape[0]):
        x[i] = y[x.shape[0] - 1 - i]
    v = y[2:]
    v += 1.0
    c = y*x
    y[1:] = c[:-1]
    d = y + c
    return b, c, d
"""

COLUMNS = """
def f(x, w):
    for k in range(x.shape[1]):
        a = w*x[:, k]
        x[:, k] = a + w
        b = a*a
        w += 0.5*b
    return w*1.0
"""

STENCIL = """
def f(u, v, n):
    for k in range(n):
        t = np.empty(u.shape[0] - 2)
        t[:] = 0.25*u[1:-1]
        u[1:-1] = 0.0
        v[2:] += t
        v[1:-1] += -2.0*t
        v[:-2] += t
        h = np.empty((w.shape[0] - 1, w.shape[1] - 3))
        h[:] = u[0] + w[1:, 3:]
        w[1:, 3:] += h
        w[:-1, 1:-2] += 0.5*h
        w[1:, :-3] += -h
    return u*1.0
""".replace("f(u, v, n)", "f(u, v, w, n)")


LIVES = """
def f(x, n):
    a = x + 1.0
    b = a*2.0
    s = 0.0
    for k in range(n):
        if k == 3:
            a = b*0.5
            break
        a = b + a
        c = a*a
        if k == 1:
            b = x*3.0
            c = b + c
            continue
        s = s + np.sum(c)
        b = c - a
        v = b[1:]
        v += 1.0
    r = a + b
    a = r*r
    b = a - x
    a = b + 1.0
    b, a = a, b
    return np.sum(a) + s, b
"""


def test_a_chain_is_one_loop_without_arrays() -> None:
    text = lowered_text(CHAIN, *vectors(2, 5))
    assert text.count("for ") == 1
    assert "np.empty" not in text


def test_shifted_additions_are_one_loop_each() -> None:
    text = lowered_text(STENCIL, *vectors(2, 9), R.random((5, 8)), 2)
    assert text.count("for ") == 1 + (1 + 1) + (2 + 2) + 1  # iterations; two nests each; the copy that is returned
    assert text.index("np.zeros") < text.index("for k in range(n)")


TWICE = """
def f(u, v, p, q, n):
    for k in range(n):
        t = np.empty(u.shape[0] - 2)
        t[:] = 0.25*u[1:-1]
        r = np.empty(u.shape[0] - 2)
        r[:] = 0.5*p[1:-1]
        v[2:] += t
        q[2:] += r
        v[1:-1] += -2.0*t
        q[1:-1] += -2.0*r
        v[:-2] += t
        q[:-2] += r
    return u*1.0
"""

COUNTED = """
def f(x, y, n):
    s = 0.0
    for i in range(n):
        x[i] = 2.0*x[i]
    for j in range(n):
        y[j] = y[j] + 1.0
    k = 0
    for i in range(n):
        for i in range(3):
            x[i] = x[i] + y[i]
        y[i] = 0.5*y[i]
    for j in range(n):
        x[j] = x[j]*y[j]
    for i in range(2):
        y[i] = y[i]*3.0
    s = s + i
    for j in range(2):
        y[j] = y[j] - x[j]
    for i in range(1):
        x[i] = x[i]*0.5
    return s*i
"""


PASSING = """
def f(x, y):
    for i in range(x.shape[0]):
        x[i] = 2.0*x[i]
    for i in range(y.shape[0]):
        y[i] = y[i] + 1.0
    for i in range(x.shape[0]):
        x[i] = x[i]*x[i]
    return x.shape[0]
"""


def test_shifted_additions_of_two_arrays_in_turn_are_one_loop_for_each() -> None:
    text = lowered_text(TWICE, *vectors(4, 9), 2)
    assert text.count("for ") == 1 + 3 + 1  # iterations; what is made, and the two sums; the copy that is returned
    assert text.count("v[i] = v[i] + ") == text.count("q[i] = q[i] + ") == 1


def test_loops_that_count_by_the_same_name_pass_each_other() -> None:
    text = lowered_text(PASSING, *vectors(1, 9), *vectors(1, 4))
    assert text.count("for ") == 2


def test_a_tangent_shares_the_loops_of_its_argument() -> None:
    def f(x: np.ndarray, y: np.ndarray) -> float:
        z = x.copy()
        z[1:] = 2.0 * x[1:]
        return np.sum(z * x) + y[0]

    x, y = np.array([1.0, 2.0, 3.0]), np.ones(3)
    source = emit(lower_to_loops(differentiable(f, wrt=(0, 1)).inspect(x, y)._program.pushed))
    assert source.text.count("for ") == 2
    pushed = build_python(source)
    np.testing.assert_allclose(pushed(x, y, y, 2.0 * y), (28.0, 24.0))
    with pytest.raises(ValueError, match="a tangent does not have the shape of its argument"):
        pushed(x, y, y, np.ones(4))


@pytest.mark.usefixtures("either_way")
def test_numbers_stay() -> None:
    assert_same(CHAIN, *(vectors(2, n) for n in (0, 1, 7) if n != 1), (np.ones(3), np.ones(4)))
    assert_same(ORDER, *(vectors(2, n) for n in (2, 3, 8)))
    assert_same(TWICE, *((*vectors(4, n), k) for n in (2, 3, 4, 9) for k in (0, 1, 3)))
    assert_same(PASSING, *((*vectors(1, n), *vectors(1, m)) for n, m in ((5, 7), (0, 3), (4, 0))))
    assert_same(COUNTED, *((*vectors(2, 7), n) for n in (0, 1, 2, 3, 7)))
    assert_same(LIVES, *((*vectors(1, 4), n) for n in range(6)))
    assert_same(COLUMNS, (R.random((4, 3)), *vectors(1, 4)), (R.random((4, 0)), *vectors(1, 4)))
    sizes = ((9, 5, 8), (3, 2, 4), (2, 4, 3), (4, 1, 5), (5, 3, 3))
    assert_same(STENCIL, *((*vectors(2, n), R.random((a, b)), k) for n, a, b in sizes for k in (0, 1, 3)))


ERRORS = """
def f(x, y, n):
    s = 0.0
    for i in range(x.shape[0]):
        s = s + math.sqrt(float(x[i]))
    for i in range(x.shape[0]):
        y[i] = 2.0*y[i]
    for i in range(x.shape[0]):
        s = s + math.log(float(y[i]) + 1.0) + 1/n
    for i in range(x.shape[0]):
        x[i] = x[i] + 1.0
    return s
"""


OVERLAP = """
def f(y, n):
    a = np.ones(4)
    a[1:] += a[:-1]
    b = np.zeros(n)
    b[0] = y
    for k in range(3):
        b[2:] += 0.5*b[:-2]
        b[:-1] += -b[1:]
    return a, b
"""


@pytest.mark.usefixtures("either_way")
def test_what_is_added_to_an_array_is_read_before() -> None:
    assert_same(OVERLAP, *((0.3, n) for n in (3, 2, 4, 7)))


BETWEEN = """
def f(x, r, k):
    a = np.copy(x)
    s = 0.0
    u = r[k]
    for i in range(x.shape[0]):
        a[i] = 2.0*a[i]
    r[k] = 0.5
    t = 1.5
    for i in range(a.shape[0]):
        s += a[i]*t
    r[k] += s
    b = np.empty((a.shape[0], 3))
    for i in range(b.shape[0]):
        x[i] = x[i]*a[i]
    v = r[k]
    for i in range(b.shape[0]):
        a[i] = a[i]*u*v
    r[k] = v*u
    for i in range(x.shape[0]):
        x[i] = x[i] + a[i]*r[k]
    return s
"""


@pytest.mark.usefixtures("either_way")
def test_sizes_of_copies_are_known_and_elements_are_no_hindrance() -> None:
    text = lowered_text(BETWEEN, *vectors(2, 4), 2)
    assert text.count("for ") == 3  # up to where `v` is read; up to where `r[k]` is read again
    assert_same(BETWEEN, *((*vectors(2, 4), k) for k in range(-5, 6)))


@pytest.mark.usefixtures("either_way")
def test_errors_leave_behind_what_they_left() -> None:
    text = lowered_text(ERRORS, *vectors(2, 4), 1)
    assert text.count("for ") == 4
    bad = np.array([1.0, 2.0, -3.0])
    calls = [(*vectors(2, 3), 2), (bad, np.ones(3), 1), (np.ones(3), bad, 1), (bad, bad, 0), (np.ones(3), bad, 0)]
    assert_same(ERRORS, *calls)
    func = nests_reader.compiled(ERRORS, calls[0])
    for args in calls[1:]:
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        with pytest.raises((ValueError, ZeroDivisionError)):
            func(*mine)
        with pytest.raises((ValueError, ZeroDivisionError)):
            python_function(ERRORS)(*theirs)
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


LAST_COUNTER = """
def f(x, y, n):
    z = np.empty(x.shape[0])
    w = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        z[i] = 2.0*x[i]
    for k in range(x.shape[0]):
        w[k] = 3.0*x[k]
    w[0] = k
    return z, w
"""

TWO_ERRORS = """
def f(x, y, n):
    s = 0.0
    t = 0.0
    for i in range(x.shape[0]):
        s = s + math.sqrt(float(x[i]))
    for i in range(x.shape[0]):
        t = t + 1/n
    return s + t
"""

A_CHECK_BEHIND = """
def f(x, y, n):
    s = 0.0
    for i in range(x.shape[0]):
        s = s + math.sqrt(float(x[i]))
    if n == 0:
        raise IndexError("no")
    return s
"""

SIDE_BY_SIDE = """
def f(x, y, n):
    a = np.empty((x.shape[0], 2))
    for i in range(x.shape[0]):
        a[i, 0] = x[i]
        a[i, 1] = y[i]
    s = 0.0
    for i in range(x.shape[0]):
        s = s + a[i, 0]*a[i, 0]*a[i, 1]
    return s
"""

ADDED_TO = """
def f(x, y, n):
    a = x*2.0
    a += y
    return np.sum(a*y)
"""

GROWING = """
def f(x, y, n):
    s = 0.0
    for k in range(n):
        a = np.empty(k + 1)
        for i in range(k + 1):
            a[i] = 2.0*i
        s = s + a[k]*a[0] + np.sum(a)
    return s
"""

LASTING = """
def f(x, y, n):
    s = 0.0
    v = y
    for k in range(n):
        a = np.empty(3)
        for i in range(3):
            a[i] = 2.0*i + k
        s = s + v[1]
        v = a
    return s
"""

TWO_NAMES = """
def f(x, y, n):
    m = x.shape[0]
    a = np.empty(m)
    b = np.empty(m)
    z = np.empty(m)
    for i in range(m):
        a[i] = x[i]
        b[i] = 0.5*x[i]
    v = b
    if n > 1:
        v = a
    for i in range(m):
        a[i] = 2.0*a[i]
    for i in range(m):
        z[i] = v[m - 1 - i] + a[i]
    return z
"""

ANOTHER_COLUMN = """
def f(x, y, n):
    m = x.shape[0]
    a = np.empty((m, m))
    b = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            a[i, j] = x[i]*y[j]
    for i in range(m):
        for j in range(m):
            b[i, j] = a[i, m - 1 - j] + a[i, j]
    return b
"""

PASSED_READER = """
def f(x, y, n):
    s = 0.0
    for i in range(x.shape[0]):
        x[i] = 2.0*x[i]
    for i in range(x.shape[0] - 1):
        s = s + y[i + 1]
    for i in range(x.shape[0]):
        y[i] = 3.0*x[i]
    return s
"""


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(
    "text",
    [
        LAST_COUNTER,
        TWO_ERRORS,
        A_CHECK_BEHIND,
        SIDE_BY_SIDE,
        ADDED_TO,
        GROWING,
        LASTING,
        TWO_NAMES,
        ANOTHER_COLUMN,
        PASSED_READER,
    ],
)
def test_loops_in_their_order(text: str) -> None:
    bad = np.array([1.0, 2.0, -3.0])
    assert_same(text, (*vectors(2, 3), 3), (*vectors(2, 3), 1), (bad, np.ones(3), 0), (bad, np.ones(3), 2))


@pytest.mark.usefixtures("either_way")
def test_a_number_is_rounded_as_the_array_it_stands_for() -> None:
    text = """
    def f(x, y, c):
        a = np.empty(x.shape[0], np.float32)
        for i in range(x.shape[0]):
            a[i] = c*y[i]
        s = 0.0
        for i in range(x.shape[0]):
            s = s + y[i]*a[i]
        return s
    """
    x, y = vectors(2, 5)
    assert_same(text, (x, y, 1.1), tolerance=0.0)


OFF_THE_EDGE = """
def f(x, w):
    h = np.empty((w.shape[0] - 3, w.shape[1] - 2))
    h[:] = 2.0*x[0]
    w[1:-2, :-2] += h
    w[2:-1, 2:] += 0.5*h
    w[3:, 1:-1] += -h
    return w*1.0
"""

ROWS = """
def f(x, w):
    h = np.empty((w.shape[0] - 1, w.shape[1]))
    h[:] = 2.0*x[0]
    w[1:] += h
    w[:-1] += h
    return w*1.0
"""


@pytest.mark.parametrize(
    "text",
    [
        OFF_THE_EDGE,
        OFF_THE_EDGE.replace("0.5*h", "np.inf*h"),
        ROWS.replace("    w[1:]", "    t = 0.25*h\n    h += 1.0\n    w[1:]").replace("w[:-1] += h", "w[:-1] += t + h"),
        ROWS.replace("    w[1:] += h\n", "    t = 0.25*h\n    h += 1.0\n    w[1:] += t\n    w[:-1] += t\n"),
        ROWS.replace("    w[:-1]", "    g = w*2.0\n    w[:-1]").replace("w*1.0", "g"),
        ROWS.replace(
            "    w[:-1]",
            "    s = 0.0\n    for i in range(x.shape[0]):\n        s = s + math.sqrt(float(x[i]))\n    w[:-1]",
        ).replace("w*1.0", "s"),
        ROWS.replace("w*1.0", "h"),
    ],
)
def test_shifted_additions_in_their_order(text: str) -> None:
    """Small integers and powers of two, so that sums in another order have the same bits."""
    w = R.integers(-8, 9, size=(5, 6)).astype(float)
    assert_same_text(text, (np.array([1.0, 4.0]), w), (np.array([2.0, -1.0]), w))


def test_what_one_loop_looks_at_and_adds_up_needs_no_tape() -> None:
    def f(x: np.ndarray, y: np.ndarray, c: float) -> float:
        total = 0.0
        for i in range(x.size):
            r = math.sqrt(x[i]) * c
            s = math.atan(r) * y[i]
            total += s * s
        return total

    x, y = R.random(5) + 0.5, R.random(5)
    found = differentiable(f, wrt=(0, 1, 2))
    text = found.inspect(x, y, 0.5).compiled
    assert text.count("for i in") == 1
    assert "tape = np.empty" not in text
    value, (x_bar, y_bar, c_bar) = found.value_and_grad(x, y, 0.5)
    r = 0.5 * np.sqrt(x)
    r_bar = 2.0 * np.arctan(r) * y * y / (1.0 + r * r)
    np.testing.assert_allclose(value, np.sum((np.arctan(r) * y) ** 2))
    np.testing.assert_allclose(x_bar, r_bar * 0.25 / np.sqrt(x))
    np.testing.assert_allclose(y_bar, 2.0 * np.arctan(r) ** 2 * y)
    np.testing.assert_allclose(c_bar, np.sum(r_bar * np.sqrt(x)))
    with pytest.raises(ValueError, match="math domain error"):
        found.value_and_grad(-x, y, 0.5)


def test_a_last_number_of_a_loop_is_of_its_last_trip() -> None:
    def f(x: np.ndarray, c: float) -> float:
        total = 0.0
        last = 0.0
        for i in range(x.size):
            last = math.sqrt(x[i]) * c
            total += last * last
        return total * last

    x = np.array([1.0, 4.0, 9.0])
    value, (x_bar, c_bar) = differentiable(f, wrt=(0, 1)).value_and_grad(x, 2.0)
    np.testing.assert_allclose(value, 56.0 * 6.0)
    np.testing.assert_allclose(x_bar, [24.0, 24.0, 24.0 + 56.0 / 3.0])
    np.testing.assert_allclose(c_bar, 3.0 * 56.0 * 6.0 / 2.0)


@pytest.mark.usefixtures("either_way")
def test_precision_stays() -> None:
    text = """
    def f(x, y):
        a = x*np.float32(1.1)
        b = a/np.float32(3.0)
        k = x > y
        c = b*b - a
        return c*k
    """
    assert_same(text, tuple(v.astype("float32") for v in vectors(2, 9)), tolerance=0.0)


def test_headers_of_sweeps_stand_where_the_sweeps_begin() -> None:
    def f(x: np.ndarray, y: np.ndarray) -> float:
        z = np.sin(x) * y
        return np.sum(z * z) + np.dot(x, y)

    text = differentiable(f, wrt=(0, 1)).inspect(np.ones(3), np.ones(3)).compiled
    assert "---- both sweeps in one loop ----" in text
    assert "---- backward sweep ----" not in text

    def g(x: np.ndarray, w: np.ndarray) -> float:
        z = np.cumsum(x * w)
        return np.sum(np.sin(z)) * z[0]

    text = differentiable(g, wrt=(0, 1)).inspect(np.ones(3), np.ones(3)).compiled
    before, _, after = text.partition("---- backward sweep ----")
    assert "z_bar[i] = " not in before and "np.sin" in before and after
    assert before.index("forward sweep") < before.index("np.empty")


def entropy(x: np.ndarray) -> float:
    total = 0.0
    for i in range(x.size):
        p = math.sqrt(x[i])
        total += p * math.log(p)
    return total


@pytest.mark.compiled
def test_the_sweeps_of_a_gradient_share_a_loop_with_their_tangents() -> None:
    x, v = np.array([0.3, 1.7, 0.9]), np.array([0.2, -0.4, 1.3])
    slope = hvp(entropy, (x,), (v,), backend="numba")
    np.testing.assert_allclose(slope, -0.125 * x**-1.5 * np.log(x) * v, rtol=1e-13)
    with pytest.raises(ValueError, match=r"math domain error|positive input"):
        hvp(entropy, (-x,), (v,), backend="numba")
    program = differentiable(grad(entropy))._specialise((x,), {}).program
    text = compiled_text(program, program.function("tangent")).text
    assert "---- both sweeps in one loop ----" in text
    assert text.count("np.empty") == 1  # the result


def test_a_gradient_that_something_follows_is_no_backward_sweep() -> None:
    def steepness(x: np.ndarray) -> float:
        slope = grad(entropy)(x)
        total = 0.0
        for i in range(x.size):
            total += slope[i] * slope[i]
        return total

    def along_it(x: np.ndarray) -> float:
        return jvp(entropy, (x,), (grad(entropy)(x),))[1]

    x = np.array([0.3, 1.7, 0.9])
    for function in (steepness, along_it):
        program = differentiable(function)._specialise((x,), {}).program
        assert "backward sweep" not in readable_text(program, program.function("jvp")).text
    program = differentiable(grad(entropy))._specialise((x,), {}).program
    assert readable_text(program, program.function("jvp")).text.count("---- backward sweep") == 1
    assert "backward sweep" not in readable_text(program, program.function("primal")).text


def test_a_mask_is_counted_once() -> None:
    def f(x: np.ndarray) -> float:
        mask = x > 0.5
        y = x[mask]
        x[mask] = y * 2.0
        return np.sum(x[mask] * y)

    text = differentiable(f).inspect(np.ones(3)).compiled
    assert text.count("count += 1") == 1
    assert "count_1" not in text


DISTANCES = """
def f(x, y):
    n = x.shape[0]
    s = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                d = x[i] - x[j]
                s += np.dot(d, d)
    for i in range(n):
        for j in range(n):
            if i != j:
                d = x[i] + x[j]
                s += np.dot(d, d) * y[i]
    return s
"""


def test_new_arrays_of_both_sweeps_and_of_branches_are_made_once() -> None:
    text = lowered_text(DISTANCES, R.random((4, 3)), R.random(4))
    assert text.count("np.empty") == 4  # one each before and behind the pair that is left out
    assert max(text.index(f"{name} = np.empty") for name in ("d_1", "d_2")) < text.index("for i in", text.index("d_1"))
    assert all(line.startswith("    ") and line[4] != " " for line in text.splitlines() if "np.empty" in line)
    assert_same(DISTANCES, *((R.random((n, 3)), R.random(n)) for n in (5, 0, 1)))


TABLE = """
def f(x, n):
    s = 0.0
    for i in range(x.shape[0]):
        if n < 10:
            t = np.empty((n, n))
            t[0] = x[i]
            s += np.sum(t[0] @ t[0])
    return s
"""


def test_new_arrays_of_branches_that_may_be_large_stay_in_them() -> None:
    text = lowered_text(TABLE, R.random(3), 3)
    assert "            t = np.empty((n, n))" in text
    assert_same(TABLE, (R.random(3), 3), (R.random(3), 10**7))


CHECKED = """
def f(x, y):
    s = np.zeros(5)
    for i in range(x.shape[0]):
        s += x[i]
        total = 0.0
        for k in range(x.shape[1]):
            total += x[i, k] * y[k]
        s *= total
    return s
"""


def test_loops_behind_a_check_count_to_what_it_implies() -> None:
    text = lowered_text(CHECKED, R.random((4, 5)), R.random(5))
    check = text.index("!= 5:")
    assert "range(x_n1)" not in text[check:] and "range(x.shape[1])" not in text[check:] and "range(5)" in text[check:]
    assert_same(CHECKED, *((R.random((n, m)), R.random(6)) for n, m in ((4, 5), (0, 5), (4, 2), (4, 6), (0, 6))))


def listed(x):
    s = []
    for i in range(x.shape[0]):
        d = x - x[i]
        s.append(np.dot(d, d))
    return sum(s)


def test_numbers_in_lists_share_no_memory_with_what_they_are_made_of() -> None:
    lower = differentiable(listed).inspect(R.random(4)).stages["fuse_loops"]
    assert str(lower).index("d_2 = np.empty") < str(lower).index("for i in")


@pytest.mark.parametrize("length", [2, 3])
def test_assignments_of_what_a_scalar_holds_are_left_out(length: int) -> None:
    """All short sequences of such assignments; those left out change nothing."""
    parts = ["a = b", "b = a", "a = x[0]", "b = x[0]", "x[0] = a", "a = a + 1.0", "b = a*a"]
    parts += ["if a > 2.0:\n        x[0] = 7.0", "for k in range(2):\n        a = a + 1.0"]
    x = np.array([3.0])
    left_out = 0
    for chosen in itertools.product(parts, repeat=length):
        text = "def f(a, b, x):\n    a = a*1.0\n    " + "\n    ".join(chosen) + "\n    return a, b, x"
        function = nests_reader.read(text, (1.0, 2.0, x))
        body = without_repetitions(function.body)
        left_out += len(function.body) - len(body)
        found = build_python(emit(dataclasses.replace(function, body=body)))(1.0, 2.0, x.copy())
        np.testing.assert_equal(found, python_function(text)(1.0, 2.0, x.copy()))
    assert left_out >= 7 ** (length - 1)


def test_sweeps_in_one_loop_record_in_scalars_that_they_do_not_copy_back() -> None:
    def loss(x, y):
        total = 0.0
        for i in range(len(x)):
            u = math.sin(x[i])
            v = math.tanh(u + x[i] * y[i])
            total += math.sin(v) * u
        return total

    text = str(differentiable(loss).inspect(R.random(9), R.random(9)).stages["fuse_loops"])
    assert text.count("= x[i]\n") == 1
    assert "= v_tape" not in text and "= u_tape" not in text
