"""Which loops run in chunks, and what chunks may not share.

The programs run as Python in chunks of one iteration, in several orders, with every access noted
(`tests/chunk_orders.py`).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numba import prange

import tapegen as tg
from tapegen.loops.parallel.outlining import Verdict
from tapegen.loops.pipeline import lower_to_loops
from tests.checkpointed import compare
from tests.chunk_orders import Conflict, checked_chunks, chunks_in_any_order
from tests.nests_reader import read
from tests.program_files import Program, collect
from tests.test_programs import assert_same

R = np.random.default_rng(7)
X, Y, M = R.normal(size=6), R.normal(size=6), R.normal(size=(6, 4))
PLACES = np.array([0, 2, 2, 5, 1, 0])


def verdicts(text: str, *args: Any, boundscheck: bool = True) -> list[Verdict]:
    """What becomes of the loops of a program."""
    found: list[Verdict] = []
    with checked_chunks():
        lower_to_loops(read(text, args), verdicts=found, boundscheck=boundscheck)
    return found


SEQUENTIAL = {
    "'s' keeps its value": """
def f(x, y, p):
    s = 0.0
    for i in range(6):
        s = s*0.5 + x[i]
        y[i] = s
    return y
""",
    "elements of 'y' that another one writes": """
def f(x, y, p):
    for i in range(5):
        y[i + 1] = y[i]*x[i] + 1.0
    return y
""",
    "elements of 'x' that another one writes": """
def f(x, y, p):
    for i in range(6):
        x[p[i]] = y[i]*y[i] + 1.0
    return x
""",
    "an iteration may end it": """
def f(x, y, p):
    for i in range(6):
        if x[i] > 0.5:
            break
        y[i] = x[i]*x[i] + 1.0
    return y
""",
    "a decision depends on the rounding of 's'": """
def f(x, y, p):
    s = 0.0
    for i in range(6):
        s = s + x[i]*y[i]*x[i]
    if s > 0.5:
        s = 2.0*s
    return s
""",
}


@pytest.mark.parametrize("reason", list(SEQUENTIAL))
def test_loops_that_run_in_order(reason: str) -> None:
    (found,) = verdicts(SEQUENTIAL[reason], X, Y, PLACES)
    assert reason in found.reason


def test_sums_are_private_and_elements_separate() -> None:
    text = """
def f(x, y, p):
    s = 0.0
    a = np.zeros(6)
    for i in range(6):
        t = x[i]*y[i]
        y[i] = t*t + x[i]
        a[p[i]] += t
        s = s - t
    return s, a, y
"""
    (found,) = verdicts(text, X, Y, PLACES)
    assert found.reason == ""


SHARED = {
    "each iteration has a temporary array of its own": """
def f(x, y, p):
    t = np.empty(6)
    a = np.empty((6, 6))
    for i in range(6):
        for j in range(6):
            t[j] = x[i]*y[j]
        s = 0.0
        for j in range(6):
            s = s + t[j]*t[j]
        for j in range(6):
            a[i, j] = s*t[j]
    return a
""",
    "strips of iterations do not meet": """
def f(x, y, p):
    n = x.shape[0]
    for start in range(0, n, 4):
        width = min(4, n - start)
        for k in range(width):
            y[start + k] = y[start + k]*x[k]
    return y
""",
    "a new array is not the old one": """
def f(x, y, p):
    v = x.copy()
    for i in range(5):
        v[i + 1] = x[i]*x[i + 1] + y[i]
    return v
""",
}


@pytest.mark.parametrize("what", list(SHARED))
def test_loops_that_run_in_any_order(what: str) -> None:
    assert {found.reason for found in verdicts(SHARED[what], X, Y, PLACES)} == {""}


TEMPORARIES = {
    "it is read before": ("s = t[0]", "for j in range(6):\n            t[j] = x[i]*y[j]"),
    "it is overwritten in part": ("s = 0.0", "for j in range(5):\n            t[j] = x[i]*y[j]"),
    "it is overwritten on a condition": ("s = 0.0", "if x[i] > 0.0:\n            t[:] = x*y"),
}


@pytest.mark.parametrize("why", list(TEMPORARIES))
def test_a_temporary_array_that_keeps_values(why: str) -> None:
    first, second = TEMPORARIES[why]
    text = f"""
def f(x, y, p):
    t = np.zeros(6)
    a = np.empty(6)
    for i in range(6):
        {first}
        {second}
        for j in range(6):
            s = s + t[j]*t[j]
        a[i] = s
    return a
"""
    assert any("elements of 't'" in found.reason for found in verdicts(text, X, Y, PLACES))


def test_the_report_says_which_loops_run_in_parallel() -> None:
    function = tg.differentiable(stencil, parallel=True)
    report = function.inspect(X, 3).report
    (first, *_), last = report.loops, report.loops[-1]
    assert (first.sweep, last.sweep) == ("forward", "backward")
    assert "for _ in range(n):" in first.line
    assert first.reason.endswith("keeps its value from one iteration to the next")
    assert any(loop.reason == "" and "v[1:-1] = " in loop.line for loop in report.loops)
    assert "one: 'u' keeps its value" in str(report) or "one: 'u_1' keeps its value" in str(report)
    assert function.with_options(parallel=False).inspect(X, 3).report.loops == ()


def test_the_executor_detects_conflicts() -> None:
    def next_one(chunk: int, chunks: int, y: np.ndarray) -> None:
        y[chunk] = y[(chunk + 1) % chunks]

    def same_one(chunk: int, chunks: int, y: np.ndarray) -> None:
        y[0] = 1.0

    for function in (next_one, same_one):
        with pytest.raises(Conflict):
            chunks_in_any_order(function, 4, np.zeros(4))


# ---- tapes that grow ----------------------------------------------------------------------------------------------


def searched(x: np.ndarray, y: np.ndarray) -> float:
    s = 0.0
    for i in prange(len(x)):
        u, step = y[i], 1.0
        while abs(step) > 1e-3:
            step = (u * u - abs(x[i])) / (2.0 * u + 3.0)
            u = u - step
        s += u
    return s


def stopped(x: np.ndarray, y: np.ndarray) -> float:
    s = 1.0
    for i in prange(len(x)):
        v, u = np.zeros(2), x[i]
        for k in range(4):
            v = v * 0.5 + u
            u = u * np.exp(0.3 * y[k])
            if u > 0.5:
                u = u - v[0] * v[1]
                break
        s -= u * y[i]
    return s


def states(x: np.ndarray, y: np.ndarray) -> float:
    total = 0.0
    for i in prange(len(x)):
        v = y * x[i]
        while np.sum(v * v) > 0.1:
            v = np.sin(v) * 0.8
        total += v[1]
    return total


def steps(x: np.ndarray, y: np.ndarray) -> float:
    u = x.copy()
    for _ in range(3):
        for i in prange(len(u)):
            a = u[i]
            while abs(a) > 0.3:
                a = 0.5 * a * np.cos(a * y[i])
            u[i] = u[i] * 0.5 + a
    return np.sum(u * u)


def planes(x: np.ndarray, y: np.ndarray) -> float:
    s = 0.0
    for i in prange(len(x)):
        for j in range(3):
            a = x[i] + y[j]
            while abs(a) > 0.3:
                a = 0.5 * a * np.cos(a)
            s += a * a * y[i]
    return s


def inner_points(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    z = np.zeros(len(x))
    for i in prange(2, len(x)):
        a = x[i]
        while a * a > 0.2:
            a = 0.7 * a * np.cos(a)
        z[i] = a * y[i]
    return np.sum(z)


RECORDING = [searched, stopped, states, steps, planes, inner_points]


@pytest.mark.parametrize("function", RECORDING, ids=lambda function: function.__name__)
def test_iterations_that_record_on_tapes_that_grow(function: Any) -> None:
    given = np.abs(X) if function is searched else X
    expected = tg.value_and_grad(function, (0, 1), backend="python")(given, np.abs(Y))
    with checked_chunks() as ran:
        found = tg.value_and_grad(function, (0, 1), parallel=True, cache=False)(given, np.abs(Y))
    assert sum(chunks > 1 for chunks in ran) >= 2  # in both sweeps
    assert_same(found[0], expected[0], "value", 1e-13)
    assert_same(found[1], expected[1], "gradient", 1e-12)
    loops = tg.differentiable(function, wrt=(0, 1), parallel=True).inspect(given, Y).report.loops
    assert {loop.reason for loop in loops if "prange" in loop.line} == {""}


@pytest.mark.parametrize("function", [searched, steps], ids=lambda function: function.__name__)
def test_checkpoints_of_loops_whose_iterations_record_where_they_end(function: Any) -> None:
    differentiable = tg.differentiable(function, wrt=(0, 1), parallel=True, backend="python")
    found = compare(differentiable, (np.abs(X), np.abs(Y)), {}, function.__name__)
    assert found.checked >= 2
    assert found.wrong == []


EXTENDED = """
def f(x, y, p):
    t = np.empty(2)
    n = 0
    for i in range(6):
        n = n + {step}
        if n > t.shape[0]:
            t = ops.grown(t)
        t[n - 1] = {value}
        y[{place}] = x[i]*y[i] + {read}
    return y, t
"""
PLAIN = {"step": "1", "value": "x[i]*y[i]", "place": "i", "read": "1.0"}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"step": "2"},
        {"read": "t[0]"},
        {"read": "n"},
        {"value": "t[0]*y[i]"},
        {"place": "n - 1"},
    ],
    ids=str,
)
def test_only_tapes_on_which_values_are_put_are_divided(change: dict[str, str]) -> None:
    (found,) = verdicts(EXTENDED.format(**(PLAIN | change)), X, Y, PLACES, boundscheck=False)
    assert (found.reason == "") == (not change)


# ---- programs of users -----------------------------------------------------------------------------------------------


def terms(x: np.ndarray, w: np.ndarray, c: float) -> float:
    y = np.empty_like(x)
    s = 0.0
    for i in prange(len(x)):
        t = np.sin(x[i]) * w[i] * c
        for _ in range(3):
            t = t * t + x[i]
        y[i] = t * t
        s += y[i] * w[i]
    return s + y.sum()


def paths(p: np.ndarray, z: np.ndarray) -> float:
    total = 0.0
    for i in prange(z.shape[0]):
        s = p[0]
        for j in range(z.shape[1]):
            s = s * np.exp(p[1] * z[i, j])
        total += s * p[2]
    return total


def stencil(u: np.ndarray, n: int) -> float:
    for _ in range(n):
        v = u.copy()
        v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]
        u = v
    return np.sum(u**2)


def gathered(x: np.ndarray, places: np.ndarray) -> float:
    s = 0.0
    for i in prange(len(places)):
        s += x[places[i]] ** 2
    return s


def rows(a: np.ndarray, b: np.ndarray) -> float:
    s = 0.0
    for i in prange(a.shape[0]):
        z = a[i] @ b
        r = np.exp(a[i] * z)
        s += np.log(r.sum())
    return s


USERS = {
    terms: ((X, Y, 0.7), (0, 1, 2), 2),
    stencil: ((X, 3), 0, 3),
    gathered: ((X, PLACES), 0, 2),
    rows: ((M, M[0]), (0, 1), 2),
    paths: ((X[:3], 0.1 * R.normal(size=(40, 3))), (0, 1), 2),
}


@pytest.mark.parametrize("function", list(USERS), ids=lambda function: function.__name__)
def test_functions_run_in_chunks(function: Any) -> None:
    args, wrt, least = USERS[function]
    value, gradient = tg.differentiable(function, wrt=wrt, backend="python").value_and_grad(*args)
    with checked_chunks() as ran:
        mine = tg.differentiable(function, wrt=wrt, parallel=True, cache=False)
        found, other = mine.value_and_grad(*args)
    assert len([chunks for chunks in ran if chunks > 1]) >= least
    np.testing.assert_allclose(found, value, rtol=1e-13)
    assert_same(other, gradient, "gradient", 1e-12)


def layer(x: np.ndarray) -> np.ndarray:
    return np.sin(np.outer(x, x)) @ x


def kepler(e: float, m: float) -> float:
    u, step = m, 1.0
    while abs(step) > 1e-12:
        step = (u - e * np.sin(u) - m) / (1.0 - e * np.cos(u))
        u = u - step
    return u


def recurrent(w: np.ndarray, x: np.ndarray) -> float:
    h = np.zeros(w.shape[0])
    for t in range(x.shape[0]):
        h = np.tanh(w @ h + x[t])
    return np.sum(h)


def overwritten(x: np.ndarray, m: np.ndarray) -> float:
    total = 0.0
    terms, centred = np.empty(m.shape[0]), np.empty(m.shape[1])
    for p in prange(x.shape[0]):
        for k in range(m.shape[0]):
            for i in range(m.shape[1]):
                centred[i] = x[p, i] - m[k, i]
            square = 0.0
            for i in range(m.shape[1]):
                row = 0.5 * centred[i]
                for j in range(i):
                    row += m[k, j] * centred[j]
                square += row * row
            terms[k] = np.exp(-square)
        mass = 0.0
        for k in range(m.shape[0]):
            mass += terms[k]
        total += np.log(mass)
    return total


MADE = {
    "jacobian, forward": (
        lambda **options: tg.jacobian(lambda x: np.sin(x) * x[0], mode="forward", **options),
        (R.normal(size=34),),
    ),
    "jacobian, reverse": (lambda **options: tg.jacobian(layer, mode="reverse", **options), (X,)),
    "hessian": (lambda **options: tg.hessian(lambda x: np.sum(x[1:] * x[:-1] ** 2), **options), (R.normal(size=34),)),
    "batch with while": (
        lambda **options: tg.batch(kepler, wrt=("e", "m"), **options).value_and_grad,
        (np.abs(X) / 4, Y),
    ),
    "batch of arrays": (
        lambda **options: tg.batch(recurrent, wrt=(0, 1), **options).value_and_grad,
        (R.normal(size=(4, 3, 3)), R.normal(size=(4, 2, 3))),
    ),
    "cotangents that are zero between iterations": (
        lambda **options: tg.value_and_grad(overwritten, (0, 1), **options),
        (R.normal(size=(5, 3)), R.normal(size=(2, 3))),
    ),
}


@pytest.mark.parametrize("name", list(MADE))
def test_outermost_loops_run_in_chunks(name: str) -> None:
    make, args = MADE[name]
    with checked_chunks() as ran:
        found = make(parallel=True, cache=False)(*args)
    assert len(ran) <= 3  # the loop over directions or instances itself, and none in it
    assert max(ran) > 1
    assert_same(found, make(backend="python")(*args), "result", 1e-11)


def test_the_first_iteration_that_fails_raises() -> None:
    def roots(x: np.ndarray) -> float:
        s = 0.0
        for i in prange(len(x)):
            if x[i] < 0.0:
                raise ValueError(f"iteration {i}")
            s += x[i] ** 0.5
        return s

    with checked_chunks() as ran, pytest.raises(ValueError, match=r"iteration 2\b"):
        tg.differentiable(roots, parallel=True, cache=False).grad(np.array([1.0, 2.0, -1.0, 3.0, -2.0]))
    assert ran


# ---- programs --------------------------------------------------------------------------------------------------------


def judge(program: Program) -> None:
    """The program in chunks of one iteration against plain Python, and its pullback against that of the source."""
    want, left = program.plain
    with checked_chunks():
        function = tg.differentiable(wrt=program.wrt, cache=False, parallel=True)(program.function)
        args = program.args()
        assert_same(function(*args, **program.kwargs()), want, "value", 1e-9)
        assert_same(args, left, "arguments afterwards", 1e-9)
        found = function.vjp(*program.args(), **program.kwargs())[1](program.value_bar())
    readable = program.decorated("python").vjp(*program.args(), **program.kwargs())[1]
    assert_same(found, readable(program.value_bar()), "gradient", 1e-9)


PROGRAMS = [each for each in collect() if not each.name.startswith("language/assert_raise_print")]  # it prints
STEP = 43


@pytest.mark.parametrize("program", [pytest.param(each, id=each.name) for each in PROGRAMS[::STEP]])
def test_some_programs(program: Program) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        judge(program)


@pytest.mark.whole
@pytest.mark.parametrize("program", [pytest.param(each, id=each.name) for each in PROGRAMS])
def test_all_programs(program: Program) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        judge(program)
