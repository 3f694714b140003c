"""Small vectors in loops as scalars (`loops/vectorize/short_loops.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.module import emit
from tapegen.ir import traversal
from tapegen.ir.nodes import Store
from tapegen.loops.vectorize.short_loops import unroll_short_loops
from tapegen.pipeline.artifacts.generated_text import compiled_text
from tests.nests_reader import assert_same, read
from tests.oracle import numerical_gradient

R = np.random.default_rng(8)
P = R.normal(size=(6, 3))
Q = R.normal(size=(6, 2))


def springs(p: np.ndarray, q: np.ndarray) -> Any:
    force = np.zeros((len(p), 3))
    for i in range(len(p)):
        for j in range(i):
            d = p[j] - p[i]
            force[i] += d * (d @ d)
            force[j] -= d / np.sqrt(1.0 + d @ d)
    return np.sum(force * force)


def own_sums(p: np.ndarray, q: np.ndarray) -> Any:
    total = 0.0
    for i in range(len(p)):
        acc = np.zeros(3)
        for j in range(len(p)):
            acc += np.sin(p[j] - p[i]) * q[j, 0]
        total += np.sum(acc**2)
    return total


def single_elements(p: np.ndarray, q: np.ndarray) -> Any:
    total = 0.0
    for i in range(len(q)):
        v = np.empty(2)
        v[1] = q[i, 0] * q[i, 1]
        if q[i, 0] > 0.0:
            v[0] = v[1] ** 2
        else:
            v[0] = -v[1]
        v[1] += v[0]
        w = np.zeros(2)
        w[0] += v[1]
        total += v[0] * v[1] + np.dot(w, v)
    return total


def carried(p: np.ndarray, q: np.ndarray) -> Any:
    state = np.ones(2)
    for i in range(len(q)):
        slope = np.array([state[1], -np.sin(state[0])]) + q[i]
        state = state + 0.1 * slope
    return state[0] * state[1]


def stay_apart(p: np.ndarray, q: np.ndarray) -> Any:
    rows = np.zeros((len(p), 3))
    for i in range(len(p)):
        d = p[i] * p[i]
        rows[i] = d
        last = d
    return np.sum(rows) + np.sum(last * p[0])


def by_position(p: np.ndarray, q: np.ndarray) -> Any:
    total = 0.0
    for i in range(len(q)):
        v = np.zeros(2)
        v[i % 2] = q[i, 0]
        v += q[i]
        total += v[0] * v[1]
    return total


PROGRAMS = [springs, own_sums, single_elements, carried, stay_apart, by_position]
WITHOUT_VECTORS = [springs, own_sums, single_elements]


@pytest.mark.parametrize("f", PROGRAMS)
def test_values_and_gradients_are_those_of_vectors(f: Callable[..., Any]) -> None:
    _, func = compiled(f)
    for n in (0, 1, 6) if f is not stay_apart else (1, 6):
        p, q = P[:n], Q[:n]
        value, p_bar, q_bar = func(p, q)
        np.testing.assert_allclose(value, f(p, q), rtol=1e-12, atol=1e-300)
        want = numerical_gradient(f, (p, q), paths=[(0,), (1,)]).value
        np.testing.assert_allclose(p_bar, want[0,], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(q_bar, want[1,], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("f", WITHOUT_VECTORS)
def test_small_vectors_become_scalars(f: Callable[..., Any]) -> None:
    text, _ = compiled(f)
    assert "np.empty(3)" not in text
    assert "np.zeros(3)" not in text
    assert "np.empty(2)" not in text
    assert not [line for line in text.splitlines() if "np.dot" in line and "#" not in line]


def test_sizes_that_do_not_agree_raise() -> None:
    _, func = compiled(springs)
    for p in (Q, R.normal(size=(6, 4))):
        with pytest.raises(ValueError, match="broadcast"):
            func(p, Q)
    assert func(Q[:1], Q)[0] == 0.0  # no pair is there


def narrow(x: np.ndarray) -> np.ndarray:
    rows = np.zeros((len(x), 2), x.dtype)
    for i in range(len(x)):
        v = np.zeros(2, x.dtype)
        w = np.empty(2, x.dtype)
        w[0] = x[i, 0] * x[i, 1]
        w[1] = w[0] + x[i, 2]
        for j in range(len(x)):
            v[0] += x[j, 0] * w[1]
            v[1] += x[j, 1] + w[0]
        rows[i] = v
    return rows


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_scalars_round_as_elements_do(dtype: Any) -> None:
    x = P.astype(dtype)
    found = tg.differentiable(narrow, backend="numba")(x)
    assert found.tobytes() == narrow(x).tobytes()


COUNTER_CHANGES = """
def f(x, n):
    s = 0.0
    for i in range(n):
        for k in range(3):
            k = k + 1
            s = 0.5*s + x[k]*i
        s = s*0.9
    return s
"""


def test_counters_that_the_body_changes() -> None:
    assert_same(COUNTER_CHANGES, (R.normal(size=6), 3), (R.normal(size=4), 0))


STAYS_ZERO = """
def f(x, n):
    s = 0.0
    for i in range(x.shape[0]):
        a = np.zeros(2)
        if x[i] > 0.5:
            break
        a[0] = x[i]
        a[1] = 2.0*x[i]
        for k in range(2):
            s = s + a[k]
    return s + a[0]
"""


def test_elements_that_a_break_leaves_at_zero() -> None:
    args = (np.array([0.1, 0.2, 0.9]), 0)
    program = read(STAYS_ZERO, args)
    changed = unroll_short_loops(program)
    assert not any(isinstance(stmt, Store) for stmt in traversal.statements(changed.body))
    results = [build_python(emit(each))(*args) for each in (program, changed)]
    assert results[0] == results[1] == pytest.approx(0.9)


def test_long_programs_are_not_multiplied() -> None:
    lines = ["        for k in range(4):\n", *["            s = s*0.9 + x[k]\n"] * 10] * 100
    text = "def f(x, n):\n    s = 0.0\n    for i in range(n):\n" + "".join(lines) + "    return s\n"
    program = read(text, (R.normal(size=4), 2))
    unrolled = unroll_short_loops(program)
    before, after = (len(traversal.statements(each.body)) for each in (program, unrolled))
    assert before < after < before + 2000 < 4 * before


def compiled(f: Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
    """What numba would get for value and gradient, and that as Python."""
    program = tg.differentiable(f, backend="numba", wrt=(0, 1), cache=False)._specialise((P, Q), {}).program
    source = compiled_text(program, program.function("joint"))
    return source.text, build_python(source)
