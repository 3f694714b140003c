"""Derivatives called inside the user's own compiled code."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

from tapegen import differentiable
from tapegen.errors import BadArgument, TapegenError
from tests.oracle import numerical_gradient

ROOT = Path(__file__).parents[2]
TABLE = np.array([1.0, 2.0, 3.0])
RATE = 0.5


@differentiable
def residual(x: float, k: float) -> float:
    return math.exp(x) * k + x * x - 4.0


@differentiable
def valley(p: np.ndarray, a: float = 1.0, steep: bool = False) -> float:
    total = 0.0
    for i in range(p.size - 1):
        r = p[i + 1] - p[i] ** 2
        total += r * r * (100.0 if steep else 5.0) + (a - p[i]) ** 2
    return total + (p * p).sum() * RATE


def test_newton() -> None:
    value_and_grad = residual.njit.value_and_grad

    @njit
    def newton(x: float, k: float) -> Any:
        for n in range(50):  # noqa: B007
            value, slope = value_and_grad(x, k)
            if abs(value) < 1e-13:
                break
            x -= value / slope
        return x, n

    x, trips = newton(1.0, 0.7)
    assert abs(residual.python(x, 0.7)) < 1e-12
    assert trips < 10
    assert value_and_grad(1.0, 0.7) == residual.value_and_grad(1.0, 0.7)  # from Python too


def test_gradient_descent() -> None:
    @njit
    def descend(p: np.ndarray, steps: int) -> Any:
        p = p.copy()
        for _ in range(steps):
            p -= 0.01 * valley.njit.grad(p)
        return p, valley.njit(p, 1.0, False)

    start = np.array([0.3, -0.4, 0.9])
    expected = start.copy()
    for _ in range(20):
        expected -= 0.01 * valley.grad(expected)
    found, value = descend(start, 20)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert value == pytest.approx(valley(expected), rel=1e-13)


def test_booleans_and_arrays_of_one_element() -> None:
    vg = valley.njit.value_and_grad
    for p in (np.array([0.3, -0.4, 0.9]), np.array([0.3])):
        for steep in (False, True):
            value, gradient = vg(p, 1.5, steep)
            expected = valley.value_and_grad(p, 1.5, steep)
            assert value == pytest.approx(expected[0], rel=1e-14)
            np.testing.assert_allclose(gradient, expected[1], rtol=1e-14)


def minimise(value_and_grad: Any, x: Any, steps: int) -> Any:
    for _ in range(steps):
        _, slope = value_and_grad(x, 0.5)
        x -= 0.1 * slope
    return x


def test_passed_to_a_compiled_function() -> None:
    assert njit(minimise)(residual.njit.value_and_grad, 1.0, 3) == pytest.approx(
        minimise(residual.value_and_grad, 1.0, 3), rel=1e-14
    )


def spread(a: np.ndarray, b: np.ndarray) -> tuple[float, tuple[float, np.ndarray]]:
    c = a * b[:, 0]
    return (c * c).sum(), (c[0], b * 2.0)


def test_structures_layouts_and_precisions() -> None:
    derived = differentiable(spread, wrt=("b", "a"), has_aux=True)
    b = np.arange(12.0).reshape(3, 4)
    for dtype, m in ((np.float64, b[:, ::-1]), (np.float32, np.asfortranarray(b, np.float32))):
        a = np.array([1.0, 2.0, 3.0], dtype)
        (value, (first, doubled)), (b_bar, a_bar) = derived.njit.value_and_grad(a, m)
        expected, gradients = differentiable(spread, wrt=("b", "a"), has_aux=True, backend="python").value_and_grad(
            a, m
        )
        assert value == pytest.approx(expected[0], rel=1e-6)
        assert first == expected[1][0]
        np.testing.assert_array_equal(doubled, expected[1][1])
        for found, other in zip((b_bar, a_bar), gradients, strict=True):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, other, rtol=1e-6)
    (b_bar, a_bar), _ = derived.njit.grad(np.array([1.0, 2.0, 3.0]), b)
    estimate = numerical_gradient(lambda a, b: spread(a, b)[0], (np.array([1.0, 2.0, 3.0]), b))
    np.testing.assert_allclose(a_bar, estimate.value[(0,)], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(b_bar, estimate.value[(1,)], rtol=1e-7, atol=1e-9)


def test_axes_of_size_one_are_never_taken_for_others() -> None:
    derived = differentiable(spread, has_aux=True)
    for a, b in [(np.ones(1), np.ones((3, 4))), (np.ones(3), np.ones((1, 4))), (np.ones(3), np.ones((3, 1)))]:
        with pytest.raises(ValueError, match="an axis of size 1 next to others is not served inside compiled code"):
            derived.njit.grad(a, b)
        assert derived.with_options(backend="python").grad(a, b)[0].shape == a.shape


@differentiable
def in_place(x: np.ndarray, y: np.ndarray) -> float:
    x[1:] = x[1:] * y[:-1]
    return (x * y).sum()


def test_arguments_that_are_written() -> None:
    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    left = x.copy()
    value = in_place.python(left, y)
    given = x.copy()
    found, gradient = in_place.njit.value_and_grad(given, y)
    assert found == value
    np.testing.assert_array_equal(given, left)
    np.testing.assert_array_equal(gradient, in_place.grad(x.copy(), y))
    z = np.linspace(1.0, 2.0, 4)
    with pytest.raises(ValueError, match="'x' is written and shares memory with 'y'"):
        in_place.njit.grad(z[1:], z[:-1])
    np.testing.assert_array_equal(in_place.njit.grad(z[:2], z[2:]), in_place.grad(z[:2].copy(), z[2:]))
    fixed = x.copy()
    fixed.flags.writeable = False
    with pytest.raises(BadArgument, match="'x' is written, and it is read-only here"):
        in_place.njit.grad(fixed, y)


def with_table(x: float) -> float:
    return x * x * TABLE[1]


def of_text(x: float, name: str) -> float:
    return x * len(name)


def sorted_columns(m: np.ndarray) -> float:
    return (m[np.lexsort((m[:, 0], m[:, 1]))] * m).sum()


def counted_down(x: float, n: int) -> float:
    return x if n == 0 else x * counted_down(x, n - 1)


def test_what_cannot_be_served_says_why() -> None:
    cases: list[tuple[Any, tuple[Any, ...], str]] = [
        (with_table, (2.0,), "reads 'TABLE' from outside"),
        (of_text, (2.0, "abc"), "'name' has the type unicode_type in compiled code"),
        (sorted_columns, (np.ones((3, 2)),), "np.lexsort has no compiled form"),
        (residual.python, (2, 0.5), "'x' holds integers, which have no gradient"),
    ]
    for func, args, reason in cases:
        with pytest.raises(TapegenError, match=reason):
            differentiable(func).njit.grad(*args)
    assert differentiable(counted_down).njit.grad(2.0, 3) == 32.0  # a call of itself is none of these
    with pytest.raises(BadArgument, match=r"the parameter 'args' .* cannot be passed by position"):
        _ = differentiable(lambda *args: args[0] * 2.0).njit


def test_captured_numbers_are_never_stale_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = 2.0

    @differentiable
    def scaled(x: float) -> float:
        return scale * x * RATE

    with pytest.warns(UserWarning, match=r"scaled\.njit keeps scale = 2\.0.*Pass it as an argument") as told:
        assert scaled.njit.grad(3.0) == 1.0
    assert told[0].filename == __file__
    assert scaled.njit is scaled.njit  # RATE is a constant by its name: no other warning
    held = scaled.njit.grad
    scale = 8.0
    with pytest.warns(UserWarning, match=r"scale = 8\.0"):
        assert scaled.njit.grad(3.0) == 4.0
    assert held(3.0) == 1.0
    monkeypatch.setitem(globals(), "RATE", 0.25)

    @njit
    def called(x: float) -> float:
        return scaled.njit.grad(x)

    with pytest.warns(UserWarning, match=r"scale = 8\.0"):
        assert called(3.0) == 2.0


def test_large_integers_do_not_wrap_around() -> None:
    scaled = differentiable(lambda x, n: x * (n * n))
    assert scaled.njit.grad(2.0, 2**20) == 2.0**40
    with pytest.raises(OverflowError, match="an integer has more than 64 bits"):
        scaled.njit.grad(2.0, 2**40)


STORED = """
import json, math, sys, warnings
import numpy as np
from tapegen import differentiable
from tapegen.pipeline import compile as compiler
from tapegen.backend.numba.compiler import GeneratedCodeCompiler
import functions
from numba import njit

work = {"derived": 0, "compiled": 0}
differentiate, pipelines = compiler.derive_reverse, GeneratedCodeCompiler.define_pipelines

def derived(*args, **kwargs):
    work["derived"] += 1
    return differentiate(*args, **kwargs)

def compiled(self):
    work["compiled"] += 1
    return pipelines(self)

compiler.derive_reverse, GeneratedCodeCompiler.define_pipelines = derived, compiled
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    found = functions.newton(1.0, 0.7), functions.slope(np.array([0.3, -0.4, 0.9])).tolist()
print(json.dumps([found, list(work.values()), [str(each.message) for each in said]]))
"""
FUNCTIONS = """
import math
from numba import njit
from tapegen import differentiable
from helper import power

@differentiable
def residual(x, k):
    return math.exp(x) * k + power(x) - 4.0

@differentiable
def valley(p):
    total = 0.0
    for i in range(p.size - 1):
        r = p[i + 1] - p[i] ** 2
        total += math.sin(r) * r + (1.0 - p[i]) ** 2
    return total + (p * p).sum()

@njit
def newton(x, k):
    for _ in range(20):
        value, slope = residual.njit.value_and_grad(x, k)
        x -= value / slope
    return x

@njit(cache=True)
def slope(p):
    return valley.njit.grad(p) + residual.njit(p[0], 1.0)
"""


def test_a_second_process_compiles_only_the_code_of_the_user(tmp_path: Path) -> None:
    """What numba itself would store of the callers is not asked for: it would not see that a function has changed."""
    (tmp_path / "functions.py").write_text(FUNCTIONS, encoding="utf-8")

    def run(power: str) -> Any:
        (tmp_path / "helper.py").write_text(f"def power(x):\n    return {power}\n", encoding="utf-8")
        environment = {**os.environ, "TAPEGEN_CACHE": "1", "TAPEGEN_CACHE_DIR": str(tmp_path / "cache")}
        environment |= {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
        out = subprocess.check_output([sys.executable, "-c", STORED], env=environment, text=True)
        return json.loads(out)

    first, (derived, compiled), (said,) = run("x * x")
    assert derived > 0 and compiled > 0
    assert "Cannot cache" in said
    assert run("x * x") == [first, [0, 0], [said]]
    changed = run("x * x * x")[0]
    assert abs(math.exp(changed[0]) * 0.7 + changed[0] ** 3 - 4.0) < 1e-12
    assert changed[1][0] - first[1][0] == pytest.approx(0.3**3 - 0.3**2)
