"""Numbers, control flow and checks: what Python raises is raised, what is proved costs nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.nests_reader import assert_same, compiled, lowered_text

pytestmark = pytest.mark.compiled

R = np.random.default_rng(3)


def vector(n: int) -> np.ndarray:
    return R.random(n) + 0.2


def test_python_numbers_raise() -> None:
    text = """
    def f(x, y, which):
        r = 0.0
        if which == 0:
            r = 1.0/x
        if which == 1:
            r = x//y + x % y
        if which == 2:
            r = math.sqrt(x) + math.log(y)
        if which == 3:
            r = math.exp(x)*math.cosh(y)
        if which == 4:
            r = x**y
        if which == 5:
            r = x**-2 + y**0.5
        if which == 6:
            r = math.acos(x) + math.atanh(y)
        if which == 7:
            r = math.log(x, y) + math.log1p(x)
        if which == 8:
            r = math.sin(x) + math.fmod(x, y)
        if which == 9:
            r = float(int(x)) + math.floor(y) + round(x)
        if which == 10:
            r = x**3
        if which == 11:
            r = math.gamma(x) + math.lgamma(y)
        return r
    """
    values = [0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 2.0, 1e200, -1e200, 800.0, math.inf, math.nan]
    cases = [(x, y, k) for k in range(12) for x in values for y in (0.0, 0.5, -1.0, 2.0, -1e200)]
    assert_same(text, (0.5, 0.5, 0), *((x, y, k) for x, y, k in cases if not _beyond_floats(x, y, k)))


def _beyond_floats(x: float, y: float, which: int) -> bool:
    """Complex powers, and integers of more than 64 bits."""
    if which == 9:
        return any(math.isfinite(v) and abs(v) > 1e18 for v in (x, y))
    return (which == 4 and x < 0 and y == 0.5) or (which == 5 and y < 0)


SUMS_OF_SQUARES = """
def f(x, y, n):
    total = 0.0
    for k in range(n):
        r = x*x + y*y
        total += math.sqrt(r)
        s = r + 0.5
        total += math.log(s) + 1.0/s
    return total
"""

SIGNS_THAT_CHANGE = """
def f(x, y, n):
    total = 0.0
    r = x*x
    for k in range(n):
        total += math.sqrt(r)
        r = r - y
    s = y*y
    if n == 2:
        s = x
    total += math.sqrt(s)
    return total
"""


def test_roots_of_what_is_never_negative_need_no_checks() -> None:
    text = lowered_text(SUMS_OF_SQUARES, 1.0, 2.0, 3)
    assert "raise" not in text
    assert_same(SUMS_OF_SQUARES, (1.0, 2.0, 3), (-1.0, -2.0, 2), (0.0, 0.0, 1), (float("nan"), 1.0, 1), (1.0, 1.0, 0))


def test_signs_end_where_names_get_other_numbers() -> None:
    text = lowered_text(SIGNS_THAT_CHANGE, 2.0, 1.0, 3)
    assert text.count("math domain error") == 2
    calls = ((2.0, 1.0, 3), (1.0, 1.0, 3), (1.0, 1.0, 4), (-1.0, 0.1, 2), (-1.0, -0.1, 1), (-1.0, 1.0, 0))
    assert_same(SIGNS_THAT_CHANGE, *calls)


def test_integers_raise() -> None:
    text = """
    def f(i, j):
        return i//j, i % j, i/j, abs(i), min(i, j), max(i, j, 3), i*j - 2, -i, i**2
    """
    assert_same(text, *((i, j) for i in (-7, 0, 5) for j in (-2, 3, 0)))


def test_products_of_vectors_take_two_numbers_too() -> None:
    text = """
    def f(x, y):
        return np.dot(x, y) - np.inner(x, 3.0)*y
    """
    assert "dot" not in lowered_text(text, 1.5, 2.5)
    assert_same(text, (1.5, 2.5))


def test_numpy_numbers_do_not_raise() -> None:
    text = """
    def f(x, a, i):
        b = 1.0/x + x//x + x % x
        c = np.sqrt(a[0]) + np.log(x) + a[1]/a[2] + x**-1.0 + np.exp(x*1e5)
        d = i[0]//i[1] + i[0] % i[1]
        return b, c, d, x/2
    """
    a = np.array([-1.0, 1.0, 0.0])
    assert_same(text, *((np.float64(x), a, np.array([3, 0])) for x in (0.0, -2.0, 3.0)))


def test_indices_are_checked() -> None:
    text = """
    def f(x, i, j, a):
        s = x[i] + a[i, j] + a[-1, -2]
        x[j] = 2.0*s
        x[-1] += 1.0
        a[j][i] = 3.0 if False else 1.0
        return s, x[0], a[i].sum()
    """.replace("a[j][i] = 3.0 if False else 1.0", "a[j, i] = 1.0")
    a = R.random((3, 4))
    assert_same(text, *((vector(5), i, j, a) for i in (0, 2, 3, -3, -4) for j in (0, 2, 4, -4, -6)))


def test_loops_over_what_is_there_need_no_checks() -> None:
    text = lowered_text(
        """
        def f(a, x):
            n = a.shape[0]
            m = x.shape[0]
            s = 0.0
            for i in range(1, n - 1):
                for j in range(i):
                    s += a[i - 1, 0 if False else 0]*a[j, 0] if False else a[i - 1]*a[j] + a[i + 1]
            for k in range(m - 1, -1, -1):
                s += x[k]
            for k in range(0, m - 1, 2):
                s += x[k + 1]
            for k in range(m):
                s += x[(k + 1) % m] + x[k//2] + x[m - 1 - k] + x[min(k + 1, m - 1)] + x[max(k - 1, 0)]
            i = 0
            while i < m and x[i] > 0.0:
                s += x[i]
                i += 1
            if m > 3:
                s += x[3]
            return s
        """.replace("a[i - 1, 0 if False else 0]*a[j, 0] if False else ", ""),
        vector(4),
        vector(4),
    )
    assert "raise" not in text


def test_checks_move_in_front_of_loops() -> None:
    program = """
    def f(a, b, x, n):
        s = 0.0
        for i in range(n):
            for j in range(i, n):
                a[i, j] += x[j]*b[i]
        for i in range(1, n):
            s += x[i - 1]
        for i in range(n):
            if b[i] > 0.7:
                s += x[2*i]
        for i in range(n):
            s += b[i - 1]
        return s
    """
    text = lowered_text(program, R.random((3, 3)), vector(3), vector(3), 3)
    assert text.count("raise") == 2  # in front of all loops; the index under a condition stays where it is
    assert text.split("raise")[0].count("|") >= 3  # two axes of a, one of x, one of b
    args = [(R.random((n, m)), vector(p), vector(q), k) for n, m, p, q, k in _sizes()]
    assert_same(program, *args)


def _sizes() -> list[tuple[int, ...]]:
    full = (4, 4, 4, 8, 4)
    smaller = [tuple(size - (k == j) for k, size in enumerate(full)) for j in range(4)]
    return [full, *smaller, (4, 4, 4, 4, 4), (4, 4, 4, 4, 0), (4, 4, 4, 3, -1), (0, 0, 0, 0, 0)]


def test_control_flow() -> None:
    text = """
    def f(x, n, eps):
        s = 0.0
        k = 0
        while np.max(np.abs(x)) > eps and k < n:
            x *= 0.5
            k += 1
            if k == 3:
                continue
            s += x[0]
        for i in range(n):
            if i == 2 or s > 10.0/(i + 1):
                break
            s += 1.0 if x[i % len(x)] > 0.1 else math.sqrt(s)
        y = x[1:]*2.0 if k > 2 else x[:1] + 0.0
        if n > 2:
            z = x*2.0
        else:
            z = x + 1.0
        j = 0
        while j < len(x) and x[j] < 0.3 and 1.0/x[j] > 0.0:
            j += 1
        return s, k, y, z, j
    """
    text = text.replace("        y = x[1:]*2.0 if k > 2 else x[:1] + 0.0\n", "        y = x[1:]*2.0\n")
    assert_same(text, *((vector(4), n, eps) for n in (0, 1, 3, 8) for eps in (0.2, 0.01)))


def test_arrays_carried_through_loops() -> None:
    text = """
    def f(u, v, n, k):
        for t in range(n):
            v[1:-1] = u[1:-1] + k*(u[2:] - 2.0*u[1:-1] + u[:-2])
            u, v = v, u
        w = u.copy()
        for t in range(n):
            d = w[1:] - w[:-1]
            w = w*0.5
            w[1:] += k*d
            w = w[::-1]*1.0
        y = u
        for t in range(n):
            y = y[1:]*2.0
        return u, w, y, np.sum(y)
    """
    assert_same(text, *((vector(7), vector(7), n, 0.2) for n in (1, 2, 3, 0)))


def test_unused_views_leave_nothing_behind() -> None:
    text = lowered_text(
        """
        def f(a, i):
            row = a[i]
            part = row[1:-1]
            part += 1.0
            return a[0, 0]
        """,
        R.random((4, 4)),
        1,
    )
    assert "row" not in text
    assert "part" not in text


def test_loop_bounds_and_steps() -> None:
    text = """
    def f(x, a, b, c):
        s = 0.0
        for i in range(a, b, c):
            s += i*x[i % len(x)]
        for i in range(b, a, -2):
            s += i
        return s
    """
    assert_same(text, *((vector(4), a, b, c) for a, b in ((0, 7), (5, -3), (2, 2)) for c in (1, 3, -2, 0)))


HALVES = """
def f(x, y, n):
    total = 0.0
    for k in range(n):
        total += (x*x + 0.5)**1.5 + y**-2.5
    return total
"""


def test_halves_of_odd_integers_are_products_with_a_root() -> None:
    text = lowered_text(HALVES, 0.5, 0.5, 2)
    assert "** 1.5" not in text and "**-2.5" not in text and text.count("sqrt") == 2 and "t < 0.0" not in text
    values = [(x, y) for x in (0.0, -2.0, 0.7, 1e100, 1e104) for y in (0.3, 1e-100, 1e-130, 0.0, -1.0, math.inf)]
    assert_same(HALVES, (0.5, 0.5, 2), *((x, y, n) for x, y in values for n in (0, 1, 2) if y >= 0 or not n))


def test_halves_round_like_powers() -> None:
    x = np.exp(R.uniform(-100.0, 100.0, 20_000))
    for exponent in (-2.5, -1.5, -0.5, 0.5, 1.5, 2.5):
        text = f"def f(x):\n    return x**{exponent}"
        found, want = compiled(text, (x,))(x), x**exponent
        assert np.max(np.abs(found - want) / np.spacing(want)) <= 3.0


def test_checks_of_what_no_iteration_changes_stand_before_the_loops() -> None:
    pairs = """
    def f(x, h, n):
        total = 0.0
        for i in range(n):
            for j in range(i):
                total += math.sqrt(h + 1.0) * x[j] + 1.0 / h
        return total
    """
    text = lowered_text(pairs, vector(5), 0.5, 5)
    loop = text.index("for i in range(n)")
    assert text[:loop].count("raise") == text.count("raise") >= 2
    # no error where the inner loop makes no iteration
    assert_same(pairs, (vector(5), 0.5, 5), *((vector(5), h, n) for h in (0.5, 0.0, -2.0) for n in (0, 1, 2, 5)))


def test_checks_of_a_branch_stay_in_it() -> None:
    text = """
    def f(x, h, n):
        total = 0.0
        for i in range(n):
            if x[i] > 10.0:
                total += x[i] + 1.0 / h
        return total
    """
    assert_same(text, (vector(5), 0.5, 5), (vector(5), 0.0, 5), (vector(5) + 10.0, 0.0, 5), (vector(5) + 10.0, 0.0, 0))


def test_checks_after_a_break_stay_behind_it() -> None:
    text = """
    def f(x, h, n):
        total = 0.0
        for i in range(n):
            if x[i] > 10.0:
                break
            total += x[i] + 1.0 / h
        return total
    """
    assert_same(text, (vector(5), 0.5, 5), (vector(5), 0.0, 5), (vector(5) + 10.0, 0.0, 5))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_halves_of_zeros_and_infinities_are_those_of_powers(dtype: type) -> None:
    """Bit for bit, the sign of zero included."""
    x = np.array([-0.0, 0.0, np.inf, -np.inf, -1.0, np.nan, 1.0], dtype)
    for exponent in (-2.5, -1.5, -0.5, 0.5, 1.5, 2.5):
        text = f"""
    def f(x):
        return x**{exponent}
    """
        with np.errstate(all="ignore"):
            found, expected = compiled(text, (x,))(x), x**exponent
        np.testing.assert_array_equal(found, expected)
        shown = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[shown]), np.signbit(expected[shown]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_roots_of_numbers_are_powers(dtype: type) -> None:
    """`x ** 0.5` is a root of arrays and of `np.power`, but a power of single numbers: other bits for -0.0 and -inf."""
    text = """
    def f(x):
        y = np.zeros((3, len(x)))
        y[0] = x**0.5
        for i in range(len(x)):
            y[1, i] = x[i] ** 0.5
            y[2, i] = np.power(x[i], 0.5)
        return y
    """
    x = np.array([-0.0, 0.0, np.inf, -np.inf, -1.0, 4.0], dtype)
    with np.errstate(all="ignore"):
        found = compiled(text, (x,))(x)
        expected = np.array([x**0.5, [each**0.5 for each in x], np.power(x, 0.5)])
    np.testing.assert_array_equal(found, expected)
    shown = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[shown]), np.signbit(expected[shown]))
