"""Loops whose functions become vector instructions, and loops that keep those of the C library."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

import tapegen as tg
from tapegen.backend.numba.build import build_numba, decorator_text
from tapegen.backend.printer.module import emit
from tapegen.loops.pipeline import lower_to_loops
from tests.nests_reader import assert_same, lowered_text, read

R = np.random.default_rng(17)

LOOP = """
def f(x, y, n):
    for i in range(n):
        t = np.tanh(np.sin(x[i])*np.exp(y[i]))
        y[i] = t + np.cos(t)
    return y
"""


def args(size: int) -> tuple[Any, ...]:
    return R.normal(size=size), R.normal(size=size), size


def body_of(text: str) -> str:
    return text[text.index("def f(") :]


def test_functions_of_vector_instructions() -> None:
    text = lowered_text(LOOP, *args(5))
    assert "far += abs(x[i]) > 32768.0" in text
    quick, slow = body_of(text).split("else:")[1], body_of(text).split("else:")[0]
    assert all(f"{name}(" in quick for name in ("vtanh", "vsin", "vexp", "vcos")) and "np.sin" not in quick
    assert all(f"np.{name}(" in slow for name in ("tanh", "sin", "exp", "cos"))
    assert text.count("def vsin(") == text.count("def sine_and_cosine(") == 1
    assert "def vlog" not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("y[i] = t", "y[i - 1] = t"),
        ("np.exp(y[i])", "np.exp(y[n - 1 - i])"),
        ("y[i] = t", "y[0] = t"),
        ("np.exp(y[i])", "np.gamma(y[i])"),
        ("y[i] = t", "s = s*t\n        y[i] = s"),
        ("range(n)", "range(0, n, 2)"),
        ("y[i] = t", "if t > 0.1:\n            break\n        y[i] = t"),
    ],
)
def test_other_loops_keep_the_library(old: str, new: str) -> None:
    text = LOOP.replace(old, new).replace("    for", "    s = 1.0\n    for").replace("np.gamma", "np.sinh")
    assert "vexp" not in lowered_text(text, *args(5))


def test_what_decides_keeps_the_library() -> None:
    """The same number may be worked out again elsewhere, and must lead the same way."""
    text = LOOP.replace("return y", "k = 0\n    while y[k] > 0.5:\n        k = k + 1\n    return y")
    assert "v" not in {line.strip()[:1] for line in lowered_text(text, *args(5)).splitlines()}
    assert "vexp" not in lowered_text(text, *args(5))


COLUMN = """
def f(m, y, n):
    s = 0.0
    for i in range(n):
        y[i] = np.exp({element})
        s = s + np.exp(y[i]) * {element}
    for i in range(n):
        y[i] = np.exp({element})
    return s
"""


@pytest.mark.parametrize(("element", "takes_vectors"), [("m[0, i]", True), ("m[i, 0]", False), ("m[i, i]", False)])
def test_loops_along_columns_keep_the_library(element: str, takes_vectors: bool) -> None:
    """LLVM takes no vector instructions where elements lie apart."""
    text = COLUMN.format(element=element)
    matrices = R.normal(size=(5, 5)), R.normal(size=5), 5
    assert ("vexp" in lowered_text(text, *matrices)) is takes_vectors
    assert_same(text, matrices)


TESTED = """
def f(x, y, n):
    z = np.zeros(n)
    for i in range(n):
        z[i] = np.exp(x[i])
    s = 0.0
    for i in range(n):
        s = s + z[i]
    if {test}:
        return s
    return s * 2.0
"""


@pytest.mark.parametrize(
    ("test", "decides"),
    [
        ("np.isfinite(s)", False),
        ("np.isnan(np.log(s) - x[0] / s)", False),
        ("math.isinf(s * y[0]) or s <= 0.0", False),
        ("s > 0", False),
        ("np.isfinite(s**2 - y[0])", False),
        ("np.isfinite(s**-2 * np.log1p(y[0] - s))", True),
        ("s > 1.0", True),
        ("s - 1.0 > 0.0", True),
        ("s * y[0] > 0.0", True),
        ("s == 0.0", True),
        ("np.isfinite(1.0 / (s - 3.0))", True),
        ("np.isfinite(np.log(s + y[0]))", True),
        ("np.isnan(np.sqrt(1.0 - s))", True),
        ("np.isfinite(s ** y[0])", True),
        ("np.isfinite(1.0 if s > 3.0 else np.inf)", True),
    ],
)
def test_tests_that_do_not_depend_on_rounding(test: str, decides: bool) -> None:
    """Sums of exponentials are positive in any rounding, and finite unless they overflow."""
    text = TESTED.format(test=test)
    assert ("vexp(" in body_of(lowered_text(text, *args(5)))) is not decides
    assert_same(text, args(5), args(1))


@pytest.mark.parametrize(
    ("angle", "counts"),
    [
        ("np.tanh(x[i])", False),
        ("-3.0*np.cos(np.tanh(x[i])) - 2.0*np.tanh(x[i])", False),
        ("30000.0*np.cos(np.sin(x[i])) - 20000.0*np.tanh(x[i])", None),
        ("2.0*x[i] + y[i]*y[i]", None),
        ("6.28*x[i]", True),
        ("np.exp(x[i])", None),
    ],
)
def test_angles(angle: str, counts: bool | None) -> None:
    """What is known to be near is not counted, what is not known and takes long is left to the library."""
    text = LOOP.replace("np.sin(x[i])", f"np.sin({angle})").replace("+ np.cos(t)", "")
    lowered = lowered_text(text, *args(5))
    if counts is None:
        assert "np.sin(" in body_of(lowered) and "vtanh(" in body_of(lowered)
    else:
        assert ("far" in body_of(lowered)) is counts and "vsin(" in body_of(lowered)


def test_elements_that_a_condition_guards_are_not_counted() -> None:
    text = LOOP.replace("np.sin(x[i])", "(np.sin(x[i - 1]) if i > 0 else 0.5)").replace("+ np.cos(t)", "")
    lowered = body_of(lowered_text(text, *args(5)))
    assert "far" not in lowered and "np.sin(" in lowered


def wave(x: np.ndarray, w: np.ndarray) -> float:
    return np.sum(np.sin(w * x) * np.exp(-x) + np.log(1.5 + np.cos(x)) * np.log1p(x * x) + np.tanh(x))


@pytest.mark.compiled
@pytest.mark.parametrize("far", [0.0, 4e4, 1e22])
def test_values_and_gradients(far: float) -> None:
    f = tg.differentiable(wave, wrt=(0, 1))
    for size in (1, 3, 511, 513, 1300):
        x, w = R.normal(size=size), R.normal(size=size)
        w[size // 2] += far
        value, gradient = f.value_and_grad(x, w)
        plain, exact = tg.differentiable(wave, wrt=(0, 1), backend="python").value_and_grad(x, w)
        np.testing.assert_allclose(value, plain, rtol=1e-13, atol=1e-13)
        for got, want in zip(gradient, exact, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14 * (1.0 + far))
        assert value == f(x, w)


def test_functions_of_single_precision() -> None:
    x, y = (item.astype(np.float32) for item in args(5)[:2])
    text = lowered_text(LOOP, x, y, 5)
    assert "far += abs(x[i]) > np.float32(4096.0)" in text
    quick = body_of(text).split("else:")[1]
    assert all(f"{name}(" in quick for name in ("vtanhf", "vsinf", "vexpf", "vcosf")) and "float(" not in quick


SUM = """
def f(x, y, n):
    s = np.float32(0.0)
    for i in range(n):
        s = s + np.exp(x[i])*y[i]
    return s
"""


def test_sums_of_single_precision() -> None:
    x, y = (item.astype(np.float32) for item in args(5)[:2])
    text = body_of(lowered_text(SUM, x, y, 5))
    assert "terms = np.empty(512, np.float32)" in text and "terms[k] = vexpf(x[i_1]) * y[i_1]" in text


@pytest.mark.compiled
@pytest.mark.parametrize("far", [0.0, 5e3, 1e22])
def test_values_and_gradients_of_single_precision(far: float) -> None:
    f = tg.differentiable(wave, wrt=(0, 1))
    for size in (1, 513, 1300):
        x, w = R.normal(size=size).astype(np.float32), R.normal(size=size).astype(np.float32)
        w[size // 2] += np.float32(far)
        value, gradient = f.value_and_grad(x, w)
        plain, exact = tg.differentiable(wave, wrt=(0, 1), backend="python").value_and_grad(x, w)
        assert value.dtype == np.float32 and all(part.dtype == np.float32 for part in gradient)
        np.testing.assert_allclose(value, plain, rtol=2e-6, atol=1e-6 * size)
        for got, want in zip(gradient, exact, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * (1.0 + np.abs(want).max()))


def test_python_may_run_what_is_compiled() -> None:
    x, y, n = args(5)
    f = build_numba(emit(lower_to_loops(read(LOOP, (x, y, n))), decorator=decorator_text()), from_start=True)
    np.testing.assert_array_equal(f(x, y.copy(), n), f.py_func(x, y.copy(), n))


@pytest.mark.compiled
def test_what_is_not_finite() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e300, 5e-324])
    f = tg.differentiable(each)
    with np.errstate(all="ignore"):
        want = each(x)
    np.testing.assert_allclose(f(x), want, rtol=1e-15)
    np.testing.assert_array_equal(np.signbit(f(x))[want == 0.0], np.signbit(want)[want == 0.0])


def each(x: np.ndarray) -> np.ndarray:
    return np.stack((np.sin(x), np.cos(x), np.tanh(x), np.exp(x), np.log(x), np.log1p(x)))


RAISING = """
def f(x, y, n):
    z = np.empty(n)
    total = 0.0
    for i in range(n):
        t = math.log(x[i])
        z[i] = math.exp(y[i]*y[i])*math.erf(t)
        total = total + z[i]
    return total, z
"""


def test_errors_are_looked_for_in_front() -> None:
    text = body_of(lowered_text(RAISING, R.uniform(0.5, 2.0, 5), R.normal(size=5), 5))
    assert all(f"{name}(" in text for name in ("vlog", "vexp", "verf"))
    assert "far += t_1 <= 0.0" in text
    assert "far += (y[i_1] * y[i_1] > 709.782712893384) & (y[i_1] * y[i_1] < np.inf)" in text
    assert "math.exp" not in text and "math.log" not in text


def test_what_an_error_leaves_behind_is_written_first() -> None:
    text = RAISING.replace("z = np.empty(n)", "z = y")
    text = body_of(lowered_text(text.replace("y[i]*y[i]", "x[i]"), R.uniform(0.5, 2.0, 5), R.normal(size=5), 5))
    assert text.index("math.exp(") < text.index("else:") < text.index("vexp(")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("math.log(x[i])", "math.log(math.log(x[i]))"),
        ("math.exp(y[i]*y[i])", "math.exp(t*y[i])"),
        ("math.exp(y[i]*y[i])", "math.exp(y[n - 1 - i])*y[int(x[i])]"),
        ("math.log(x[i])", "math.sqrt(z[n - 1 - i])"),
        ("math.log(x[i])", "math.expm1(x[i])"),
    ],
)
def test_errors_that_take_long_to_find(old: str, new: str) -> None:
    text = lowered_text(RAISING.replace(old, new), R.uniform(1.5, 2.0, 5), R.normal(size=5), 5)
    assert "vexp" not in text and "far" not in text


def prices(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> float:
    total = 0.0
    for i in range(x.size):
        t = math.log(float(x[i]))
        z[i] = math.exp(float(y[i])) * math.erf(t) + math.sin(t)
        total += math.sqrt(float(x[i])) * z[i]
    return total


def outcome(f: Any, *args: Any) -> tuple[Any, ...]:
    try:
        return ("value", *np.atleast_1d(f(*args)))
    except (ValueError, OverflowError) as error:
        return type(error), str(error)


@pytest.mark.compiled
@pytest.mark.parametrize("place", [0, 511, 512, 600])
def test_errors_of_python(place: int) -> None:
    f = tg.differentiable(prices, wrt=(0, 1))
    x, y = R.uniform(0.5, 2.0, 601), R.normal(size=601)
    for odd, power in [(1.0, 709.782712893384), (1.0, 709.7827128933841), (0.0, 0.0), (-1.0, 800.0), (np.nan, np.inf)]:
        x[place], y[place] = odd, power
        for other in (0, 300):
            at, bt = x.copy(), y.copy()
            bt[other] = 710.0 if other else bt[other]
            results = []
            for run in (f, lambda *args: f.value_and_grad(*args)[0], prices):
                z = np.zeros(601)
                results.append((outcome(run, at, bt, z), z))
            for got, z in results[:2]:
                want, left = results[2]
                assert got[0] == want[0]
                if got[0] == "value":
                    np.testing.assert_allclose(got[1], want[1], rtol=1e-13)
                else:
                    assert got == want
                np.testing.assert_allclose(z, left, rtol=1e-14, atol=1e-300)


@pytest.mark.compiled
def test_gradients_without_errors() -> None:
    x, y = R.uniform(0.5, 2.0, 1030), R.normal(size=1030)
    got = tg.differentiable(prices, wrt=(0, 1)).grad(x, y, np.zeros(1030))
    t = np.log(x)
    erf = np.array([math.erf(item) for item in t])
    z = np.exp(y) * erf + np.sin(t)
    slope = (np.exp(y) * 2.0 / math.sqrt(math.pi) * np.exp(-t * t) + np.cos(t)) / x
    np.testing.assert_allclose(got[0], 0.5 / np.sqrt(x) * z + np.sqrt(x) * slope, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(got[1], np.sqrt(x) * np.exp(y) * erf, rtol=1e-13, atol=1e-14)


def errors_of_arrays(x):
    return np.sum(special.erf(x) * special.log1p(x * x))


def test_functions_of_scipy_that_others_equal_take_vector_instructions() -> None:
    x = np.linspace(-7.0, 7.0, 501)
    ours = tg.differentiable(errors_of_arrays)
    text = str(ours.inspect(x).stages["vectorize_math"])
    assert "= verf(" in text and "= vlog1p(" in text
    plain = tg.differentiable(errors_of_arrays, backend="python")
    np.testing.assert_allclose(ours.grad(x), plain.grad(x), rtol=1e-13, atol=1e-15)


def tails(x: np.ndarray) -> np.ndarray:
    return np.stack((special.ndtr(x), special.erfc(x), special.ndtr(-x) * special.erfc(-0.5 * x)))


@pytest.mark.compiled
def test_distribution_functions_take_vector_instructions() -> None:
    x = np.concatenate((np.linspace(-39.0, 28.0, 801), [np.inf, -np.inf, np.nan, 0.0, -0.0, 5e-324, 1e300]))
    ours = tg.differentiable(tails)
    text = str(tg.differentiable(lambda x: np.sum(special.ndtr(x) * special.erfc(x))).inspect(x).compiled)
    assert "= vndtr(" in text and "= verfc(" in text and "special." not in text
    # SciPy's own error grows with the square of the argument
    np.testing.assert_allclose(ours(x), tails(x), rtol=3e-13, atol=1e-307)


BOUNDED = """
def f(x, n):
    total = 0.0
    for i in range(n):
        t = math.tanh(x[i])
        total = total + (math.sin(t)*math.exp(-t**2) + math.cos(abs(t)) + math.exp(-abs(x[i])))
    return total
"""


def test_arguments_that_cannot_be_outside_are_not_checked() -> None:
    x = R.normal(size=6)
    text = body_of(lowered_text(BOUNDED, x, 6))
    assert "domain" not in text and "range error" not in text and "far" not in text
    assert all(f"{name}(" in text for name in ("vsin", "vexp", "vtanh", "vcos"))
    assert_same(BOUNDED, (x, 6), (np.array([np.inf, -np.inf, np.nan, 0.0]), 4))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("math.sin(t)", "math.sin(x[i]*1e305)", "math domain error"),
        ("math.cos(abs(t))", "math.cos(t/x[i])", "math domain error"),
        ("-abs(x[i])", "abs(x[i])", "math range error"),
        ("-t**2", "-x[i]**3", "math range error"),
    ],
)
def test_arguments_that_may_be_outside_are_checked(old: str, new: str, message: str) -> None:
    text = BOUNDED.replace(old, new)
    assert message in lowered_text(text, R.normal(size=6), 6)
    assert_same(text, *((np.array([0.5, odd]), 2) for odd in (0.1, 0.0, -1e4, 1e4, np.inf, -np.inf, np.nan, 1e-320)))


GUARDED = """
def f(x, y, n):
    s = np.exp(x[0]) - 1.0
    t = s != 0.0
    for i in range(n):
        w = np.exp(x[i]) - 1.0
        y[i] = x[i]*w if (w != 0.0) | t else 0.0
    return y
"""


def test_guards_of_products_do_not_need_exact_values() -> None:
    assert "= vexp(" in lowered_text(GUARDED, *args(5))
    for size in (2, 9):
        assert_same(GUARDED, args(size))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("else 0.0", "else 1.0"),
        ("(w != 0.0) | t", "(w != 0.0) | (w > 2.0)"),
        ("    return y", "    if w != 0.0:\n        y[0] = 1.0\n    return y"),
        ("    return y", "    t = w != 0.0\n    if t:\n        y[0] = 1.0\n    return y"),
        ("    return y", "    t = w != 0.0\n    y[0] = t*1.0\n    return y"),
        ("    return y", "    t = w != 0.0\n    y[0] = 2.0 if t else 3.0\n    return y"),
        ("    return y", "    t = w != 0.0\n    y[int(t)] = 4.0\n    return y"),
    ],
)
def test_what_else_compares_with_zero_needs_them(old: str, new: str) -> None:
    text = GUARDED.replace(old, new)
    assert "vexp(" not in lowered_text(text, *args(5))
    assert_same(text, args(5))
