"""Columns that two loops walk down are rows while these run; every bit is that of the loops as they were."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tests.loops.test_innermost_loops import assert_same_text
from tests.nests_reader import lowered_text

R = np.random.default_rng(37)


def arguments(m: int, n: int, width: int = 3) -> tuple[Any, ...]:
    return R.random((m, width)), R.random((m, width)), R.random(m), n


SIZES = (arguments(40, 40), arguments(17, 17), arguments(600, 600), arguments(40, 16), arguments(9, 9), arguments(3, 0))

PAIRS = """
def f(b, x, w, n):
    a = b.copy()
    e = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            u = x[j, 0] - x[i, 0]
            v = x[j, 2] - x[i, 2]
            r = u*u + v*v + 0.125
            q = w[j]/(r*math.sqrt(r))
            e = e + q
            a[i, 1] += q*u
            a[j, 1] -= q*u
            a[i, 0] += q*v
            a[j, 0] -= q*v
    b[0, 0] = e
    return a
"""

DOWNWARDS = """
def f(a, x, w, n):
    for i in range(n - 1, -1, -1):
        s = x[i, 1]
        for j in range(i - 1, -1, -1):
            u = x[j, 1] - s
            a[j, 2] += u*w[j]/(u*u + np.sqrt(w[i]*w[j] + 0.5))
        x[i, 0] = s + a[i, 2]
    return x
"""

ALL_PAIRS = """
def f(a, x, w, n):
    m = x.shape[0]
    for i in range(3, n - 2):
        for j in range(1, m):
            u = x[j, 0] - a[i, 0]
            v = x[j, 1] - a[i, 1]
            w[i] += 1.0/math.sqrt(u*u + v*v + 1.0) + u/(v*v + 2.0)
        for j in range(n):
            v = x[j, 1] - a[i, 1]
            w[i] -= 1.0/math.sqrt(v*v + 1.0) + v/(v*v + 2.0)
    return w
"""

OF_EACH_MATRIX = """
def f(a, x, w, n):
    c = np.zeros((2, n, 3))
    for k in range(2):
        for i in range(n):
            for j in range(i + 1, n):
                u = x[j, k] - x[i, k]
                r = u*u + 0.125
                q = w[j]/(r*math.sqrt(r))
                c[k, i, 1] += q*u
                c[k, j, 1] -= q*u
    return c
"""


BRANCHES = """
def f(b, x, w, n):
    a = b.copy()
    for i in range(n):
        if x[i, 0] > 0.25:
            if w[i] < 0.0:
                raise ValueError("negative")
            for j in range(n - i):
                u = x[j, 0] - x[i, 0]
                a[j, 1] += w[j]/(u*u + np.sqrt(u*u + w[i]))
    return a
"""


@pytest.mark.parametrize("text", [PAIRS, DOWNWARDS, ALL_PAIRS, OF_EACH_MATRIX, BRANCHES])
def test_columns_are_rows(text: str) -> None:
    assert "_column" in lowered_text(text, *SIZES[0])
    assert_same_text(text, *SIZES)


def test_what_is_copied() -> None:
    text = lowered_text(PAIRS, *arguments(40, 40))
    assert "if n >= 16 and n <= x_n0 and 2 < x_n1 and n <= a_n0 and 1 < a.shape[1]:" in text
    assert "u = x_column[j_1_1] - x_column[i]" in text and "a_column[j_1_1] - q * u" in text
    assert "for start in range(i + 1, n, 512):" in text
    text = lowered_text(DOWNWARDS, *arguments(40, 40))
    assert "for j_1 in range(i):" in text and "x_column_1[i] = s + a_column[i]" in text
    text = lowered_text(OF_EACH_MATRIX, *arguments(40, 40))
    assert "c_column = np.empty(" in text and "c[k, i_3, 1] = c_column[i_3]" in text
    assert "k < x.shape[1]" in text.replace("x_n1", "x.shape[1]")


def test_columns_that_are_not_there() -> None:
    for width, size in ((1, 1), (0, 0), (1, 0)):
        assert_same_text(PAIRS, *SIZES[:1], arguments(size, size, width))


TWICE = """
def f(a, x, w, n):
    for i in range(n):
        for j in range(i + 1, n):
            u = x[j, 0] - x[i, 0]
            a[j, 0] += w[j]/(u*u + np.sqrt(w[j] + 0.5))
    for k in range(2):
        for i in range(n):
            for j in range(i + 1, n):
                u = x[j, 0] - x[i, 0]
                a[j, 0] += w[j]/(u*u + np.sqrt(w[j] + 0.5))
    return a
"""


def test_loops_that_run_once_stay_beside_those_in_a_loop() -> None:
    text = lowered_text(TWICE, *arguments(40, 40))
    assert text.count("n >= 16") == 1 and text.index("for k in range(2)") < text.index("n >= 16")
    assert_same_text(TWICE, *SIZES)


def inner(statements: str) -> str:
    lines = "".join(f"            {line}\n" for line in statements.splitlines())
    return f"""
def f(a, x, w, n):
    b = x[1:]
    for i in range(n):
        t = x[i, 0]
        for j in range(i + 1, n - 1):
            u = x[j, 0] - t
            q = w[j]/(u*u + np.sqrt(u*u*w[i] + 0.5))
{lines}    return a
"""


STAYING = {
    "an element beside": "a[j, 0] += q*x[j + 1, 0]",
    "a column of each trip": "a[j, i % 3] += q",
    "another row": "a[j, 0] += q\na[n - 1, 0] += u",
    "columns that may be one": "a[j, n % 3] += q\na[j, 0] += u",
    "part of another": "x[j, 0] += q\na[j, 1] += b[j, 1]",
    "what trips wait for": "t = t + a[j, 0]/q",
    "an error": "if u > 7.0:\n    raise ValueError('far')\na[j, 0] += q",
}
NEAR = """
def f(a, x, w, n):
    for i in range(n):
        for j in range(i, min(n, i + 5)):
            u = x[j, 0] - x[i, 0]
            a[j, 0] += w[j]/(u*u + np.sqrt(u*u*w[i] + 0.5))
    return a
"""


FEW = inner("a[j, 0] += q").replace("w[j]/(u*u + np.sqrt(u*u*w[i] + 0.5))", "1.0/(u*u + 1.0)")
OUTLIVING = inner("a[j, 0] += q").replace(
    "        t = ", "        if x[i, 1] > 7.0:\n            raise ValueError('far')\n        t = "
)


@pytest.mark.parametrize(
    "text", [*map(inner, STAYING.values()), NEAR, FEW, OUTLIVING], ids=[*STAYING, "near", "few", "out"]
)
def test_what_stays(text: str) -> None:
    args, (a, x, w, n) = arguments(40, 39), arguments(20, 19)
    x[17, 1] = 7.5
    assert_same_text(text, args, (a, x, w, n), arguments(5, 4))
    assert "_column" not in lowered_text(text, *args)


EXPONENTIALS = """
def f(a, x, w, n):
    t = np.zeros((n, n))
    e = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            q = np.exp(-(x[j, 0] - x[i, 0])**2 - (x[j, 1] - x[i, 1])**POWER)
            t[i, j - i - 1] = q
            e = e + w[j]*q
    a[0, 0] = e
    return t
"""


def test_exponentials_take_vectors() -> None:
    args = arguments(40, 40)
    text = lowered_text(EXPONENTIALS.replace("POWER", "2"), *args)
    assert "-((x_column_1[j_1] - x_column_1[i]) ** 2)" in text and "q = vexp(" in text and "e += terms[" in text
    assert "terms" not in lowered_text(EXPONENTIALS.replace("POWER", "w[j]"), *args)


def kernel(x: np.ndarray, w: np.ndarray) -> float:
    e = 0.0
    for i in range(w.size):
        for j in range(i + 1, w.size):
            e += w[i] * w[j] * np.exp(-((x[j, 0] - x[i, 0]) ** 2) - (x[j, 1] - x[i, 1]) ** 4)
    return e


@pytest.mark.compiled
def test_compiled_exponentials() -> None:
    plain, ours = (tg.differentiable(kernel, wrt=(0, 1), backend=backend) for backend in ("python", "numba"))
    for n in (5, 30):
        args = R.normal(size=(n, 2)), R.random(n)
        value, gradient = ours.value_and_grad(*args)
        np.testing.assert_allclose(value, kernel(*args), rtol=1e-14)
        for a, b in zip(gradient, plain.grad(*args), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
        slope = (kernel(1.00001 * args[0], args[1]) - kernel(0.99999 * args[0], args[1])) / 2e-5
        np.testing.assert_allclose(np.sum(gradient[0] * args[0]), slope, rtol=1e-7)


def forces(x: np.ndarray, v: np.ndarray, w: np.ndarray, steps: int) -> float:
    p, u = x.copy(), v.copy()
    n = w.size
    energy = 0.0
    for _ in range(steps):
        for i in range(n):
            for j in range(i + 1, n):
                d0 = p[j, 0] - p[i, 0]
                d1 = p[j, 1] - p[i, 1]
                r = d0 * d0 + d1 * d1 + 0.5
                q = 1.0 / (r * math.sqrt(r))
                u[i, 0] += 0.01 * w[j] * q * d0
                u[i, 1] += 0.01 * w[j] * q * d1
                u[j, 0] -= 0.01 * w[i] * q * d0
                u[j, 1] -= 0.01 * w[i] * q * d1
                energy += w[i] * w[j] * q
        p += 0.1 * u
    return energy + np.sum(p * p)


@pytest.mark.compiled
@pytest.mark.parametrize("n", [3, 20])
def test_compiled_derivatives(n: int) -> None:
    args = R.normal(size=(n, 2)), R.normal(size=(n, 2)), R.random(n), 3
    tangents = (*(R.normal(size=arg.shape) for arg in args[:3]), None)
    plain, ours = (tg.differentiable(forces, wrt=(0, 1, 2), backend=backend) for backend in ("python", "numba"))
    assert "p_column" in str(ours.inspect(*args).compiled)
    np.testing.assert_allclose(ours(*args), forces(*args), rtol=1e-14)
    for ours_, theirs in zip(ours.grad(*args), plain.grad(*args), strict=True):
        np.testing.assert_allclose(ours_, theirs, rtol=1e-12, atol=1e-13)
    _, slope = ours.jvp(args, tangents)
    step = 1e-3
    moved = [
        forces(*(arg + k * step * t for arg, t in zip(args[:3], tangents, strict=False)), 3) for k in (-2, -1, 1, 2)
    ]
    np.testing.assert_allclose(slope, (moved[0] - 8 * moved[1] + 8 * moved[2] - moved[3]) / (12 * step), rtol=1e-7)
    products = tg.hvp(forces, args, tangents)
    gradients = [
        plain.grad(*(arg + k * step * t for arg, t in zip(args[:3], tangents, strict=False)), 3) for k in (-2, -1, 1, 2)
    ]
    for product, g0, g1, g2, g3 in zip(products, *gradients, strict=True):
        np.testing.assert_allclose(product, (g0 - 8 * g1 + 8 * g2 - g3) / (12 * step), rtol=1e-6, atol=1e-8)
