"""Functions that call themselves as often as a value says: what is passed, captured and returned; what is refused."""

from __future__ import annotations

import math
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen import differentiable
from tapegen.errors import AliasError, PerformanceWarning
from tapegen.ir.fingerprint import Places, canonical_text
from tests.judged import both, refused
from tests.lowering import lower
from tests.sources import define

TABLE = np.array([1.0, 2.0, 3.0])


def agrees(func: Any, *args: Any, backend: str = "python") -> None:
    """Value, gradient and tangent by the first argument, a float."""
    derived = differentiable(func, backend=backend)
    step = 1e-6
    slope = (func(args[0] + step, *args[1:]) - func(args[0] - step, *args[1:])) / (2 * step)
    value, gradient = derived.value_and_grad(*args)
    assert value == pytest.approx(func(*args), rel=1e-12)
    assert gradient == pytest.approx(slope, rel=1e-6)
    assert tg.jvp(func, args, (1.0, *(None for _ in args[1:])))[1] == pytest.approx(slope, rel=1e-6)


def table_of_the_module(x: float) -> float:
    def walk(v: float, k: int) -> float:
        return v if v < 0.1 else walk(v * 0.5, k + 1) * TABLE[k % 3]

    return walk(x, 0)


def arrays_in_a_list(x: float) -> float:
    def go(pair: Any) -> float:
        if pair[0][0] < 0.2:
            pair[1][0] += pair[0][1]
            return pair[1][0]
        pair[0][:] = pair[0] * 0.5
        pair[1][1] += pair[0][2]
        return go(pair) * x

    pair = [np.full(4, x), np.ones(4)]
    return go(pair) + np.sum(pair[0]) * np.sum(pair[1])


def none_or_a_string(x: float) -> float:
    def walk(v: float, tag: str | None = None) -> float:
        if v < 0.1:
            return v
        return walk(v * 0.7, "again") * x if tag is None else walk(v * 0.6) + 1.0

    return walk(x)


def structures(x: float) -> float:
    def walk(v: float, given: Any) -> Any:
        a, (b, c) = given
        if v < 0.1:
            return {"r": v * a, "s": (b, c)}
        out = walk(v * 0.5, (a * 1.1, (c, b * v)))
        return {"r": out["r"] + v, "s": out["s"]}

    out = walk(x, (x, (1.0, 2.0)))
    return out["r"] * out["s"][0] + out["s"][1]


def variable_rebound_between_calls(x: float) -> float:
    weight, total = x, 0.0

    def walk(v: float) -> float:
        return v * weight if v < 0.2 else walk(v * 0.5) + 0.1 * weight

    for k in range(3):
        total += walk(x + k)
        weight = weight * 1.5
    return total


def array_that_is_written_and_returned(x: float) -> float:
    def fill(v: float, k: int, out: np.ndarray) -> np.ndarray:
        if v < 0.1:
            return out
        out[k] = v * x
        return fill(v * 0.5, k + 1, out)

    first = np.zeros(8)
    same = fill(x, 0, first)
    same[2] = same[2] * 2.0
    return np.sum(first * first)


def blocks_of_a_matrix(x: float) -> float:
    def visit(m: np.ndarray, v: float) -> float:
        if len(m) == 1:
            m[0, 0] *= v
            return m[0, 0]
        half = len(m) // 2
        part = visit(m[:half, :half], v * 0.9) + visit(m[half:, half:].T, v)
        m[0, -1] += part
        return np.sum(m) * 0.1

    m = np.full((4, 4), x)
    return visit(m, x) + np.sum(m * m)


def integers_and_nothing(x: float) -> float:
    def count(v: float, k: int) -> int:
        return k if v < 0.1 else count(v * 0.5, k + 1)

    def nothing(v: float) -> None:
        if v > 0.1:
            nothing(v * 0.5)

    nothing(x)
    return sum(x**k for k in range(count(x, 0))) + float(np.sum(np.full(count(x, 1), x)))


PROGRAMS = [
    table_of_the_module,
    arrays_in_a_list,
    none_or_a_string,
    structures,
    variable_rebound_between_calls,
    array_that_is_written_and_returned,
    blocks_of_a_matrix,
    integers_and_nothing,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_is_passed_and_returned(program: Any) -> None:
    agrees(program, 2.9)


@pytest.mark.compiled
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_is_passed_and_returned_compiled(program: Any) -> None:
    agrees(program, 2.9, backend="numba")


# ---- orders ----------------------------------------------------------------------------------------------------------


def halved(x: float, k: float = 0.7) -> float:
    return x * x * k if x < 0.1 else math.sin(halved(0.5 * x, k * 1.1)) + x * k


def test_second_derivatives() -> None:
    step = 1e-4
    curvature = (halved(3.0 + step) - 2 * halved(3.0) + halved(3.0 - step)) / step**2
    assert tg.grad(tg.grad(halved))(3.0) == pytest.approx(curvature, rel=1e-5)
    assert tg.hessian(lambda v: halved(v[0], v[1]))(np.array([3.0, 0.7]))[0, 0] == pytest.approx(curvature, rel=1e-5)


# ---- depth -----------------------------------------------------------------------------------------------------------


def chain(x: float, n: int) -> float:
    return x * x if n <= 0 else math.sin(chain(x * 1.0001, n - 1)) + x


def test_compiled_code_is_as_deep_as_python_and_no_deeper() -> None:
    derived = differentiable(chain)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(derived.value_and_grad(0.5, 900)))
    thread.start()
    thread.join()
    assert found[0][0] == pytest.approx(chain(0.5, 900))
    with pytest.raises(RecursionError):
        derived.value_and_grad(0.5, 10**6)
    assert derived.value_and_grad(0.5, 900) == found[0]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(4000)
    try:
        with pytest.warns(PerformanceWarning, match="maximum recursion depth"):
            assert derived(0.5, 1500) == chain(0.5, 1500)
    finally:
        sys.setrecursionlimit(limit)


# ---- what is kept on disk --------------------------------------------------------------------------------------------


def halves(x: Any) -> Any:
    return x[0] * x[0] if len(x) == 1 else halves(x[: len(x) // 2]) - 0.5 * halves(x[len(x) // 2 :])


def power(x: float, n: int) -> float:
    return 1.0 if n == 0 else x * power(x, n - 1)


def halves_of_columns(a: Any, n: int) -> Any:
    total = 0
    for k in range(n):
        total += power(halves(a[k]) + halves(a[:, k]), k)
    return total


def test_one_routine_serves_all_layouts() -> None:
    derived = differentiable(backend="python")(halves_of_columns)
    text = str(derived.inspect(np.ones((3, 3)), 3).primal)
    assert [line for line in text.splitlines() if line.startswith("def halves(")] == ["def halves(x):"]
    assert text.count("def ") == 3


def test_programs_with_other_routines_are_kept_apart() -> None:
    text = "def f(x):\n    def walk(v):\n        return v if v < 0.1 else walk(v * {})\n    return walk(x)\n"
    programs = [lower(define(text.format(factor)), 2.0).function for factor in (0.5, 0.5, 0.7)]
    one, same, other = (canonical_text(program, Places(program.origin)) for program in programs)
    assert one == same
    assert one != other


# ---- refusals --------------------------------------------------------------------------------------------------------


def returned(x: np.ndarray, w: float) -> np.ndarray:
    return x if np.sum(x) < 1.0 else returned(x * 0.5, w) * w


def writes_the_result(x: np.ndarray) -> float:
    y = returned(x, 0.9)
    y[0] = 5.0
    return np.sum(y * x)


def writes_the_argument(x: np.ndarray) -> float:
    z = x * 1.0
    y = returned(z, 0.9)
    z[0] = 5.0
    return np.sum(y * z)


def writes_before(x: np.ndarray) -> float:
    z = x * 1.0
    z[0] = 2.0
    return np.sum(returned(z, 0.9) * z)


def writes_outside(x: float, start: int) -> float:
    out = np.zeros(8)

    def fill(v: float, k: int) -> None:
        if v > 0.1:
            out[k] = v * x
            fill(v * 0.5, k + 1)

    fill(x, start)
    return np.sum(out)


def two_parts(x: float) -> float:
    def swap(a: np.ndarray, b: np.ndarray, v: float) -> None:
        if v > 0.1:
            a[0] += v * b[1]
            swap(b, a, v * 0.5)

    a = np.full(6, x)
    swap(a[:3], a[3:], x)
    return np.sum(a * a)


@both
def test_arrays_that_may_be_one(backend: str) -> None:
    refused(writes_the_result, np.ones(2), error=AliasError, match="may be part", at="y[0] = 5.0", backend=backend)
    refused(writes_the_argument, np.ones(2), error=AliasError, match="may be part", at="z[0] = 5.0", backend=backend)
    refused(writes_outside, 2.0, 0, error=AliasError, match="'out', an array from outside", at="fill(x, start)")
    refused(two_parts, 2.0, error=AliasError, match="may share memory", at="swap(a[:3], a[3:], x)")


def test_an_array_that_is_written_before() -> None:
    x = np.array([1.0, 2.0])
    value, gradient = differentiable(writes_before, backend="python").value_and_grad(x)
    assert value == writes_before(x)
    assert gradient[0] == 0.0
    assert gradient[1] == pytest.approx(4.0 * 0.45**3)  # halved three times
