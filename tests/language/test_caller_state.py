"""What a function stores into objects of its caller: `self.nfev += 1`, `calls.append(x)`, `global n`.

The oracle is the plain function: value, and all of the caller's objects after each of two calls.  Each derivative is
one call, whatever it runs inside.
"""

from __future__ import annotations

import copy
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import prange

import tapegen as tg
from tapegen.errors import AliasError, NotDifferentiable

X = np.array([1.0, -2.0, 3.0])

count = 0
log: list = []
stats: dict = {"n": 0, "last": None}
settings = types.SimpleNamespace(n=0, hist=[])
box = [0]


class Made:
    number = 0

    def __init__(self, v):
        self.v = v


class Objective:
    """Counts, keeps the best point, and what it was asked for."""

    def __init__(self):
        self.nfev, self.calls, self.best, self.xbest, self.k = 0, [], np.inf, None, 2.0

    def __call__(self, x):
        self.nfev += 1
        self.calls.append(x.copy())
        value = self.k * np.sum(x**2)
        if value < self.best:
            self.best, self.xbest = value, x.copy()
        return value


objective = Objective()


def counts_globally(x):
    global count
    count += 1
    return np.sum(x * x)


def binds_a_global_name(x):
    global fresh
    fresh = np.sum(x)
    return fresh * fresh


def appends(x):
    log.append(np.sum(x))
    return np.sum(x**2)


def appends_containers(x):
    log.append({"x": x.copy(), "f": np.sum(x)})
    log.append([1, "two", (np.sum(x), None)])
    return np.sum(x**2)


def appends_in_a_loop(x):
    for i in range(len(x)):
        log.append(x[i] * 2)
        settings.n += i
    return np.sum(x**2)


def appends_until(x):
    for v in x:
        if v > 0:
            log.append(v)
            break
    return np.sum(x) ** 2


def reads_what_it_appends(x):
    log.append(1.0)
    return np.sum(x**2) * len(log)


def stores_items(x):
    stats["n"] += 1
    stats["last"] = x.copy()
    return np.sum(x**3)


def stores_attributes(x):
    settings.n += 1
    settings.hist.append((settings.n, float(np.sum(x))))
    settings.last = x
    return np.sum(x * settings.n)


def stores_and_reads_within_a_call(x):
    settings.tmp = np.sum(x)
    y = settings.tmp * 2
    settings.tmp = None
    return y * y


def stores_on_one_path(x):
    if x[0] > 5:
        stats["n"], stats["side"] = 7, 0.0
    else:
        stats["side"] = x[0]
        stats["n"] += 2
    return np.sum(x**2)


def counts_on_itself(x):
    counts_on_itself.calls += 1
    return np.sum(x**2) * 1.0


def counts_on_a_class(x):
    Made.number += 1
    return np.sum(Made(x).v ** 2)


def counts_in_a_list(x):
    box[0] += 1
    return np.sum(x**2) * box[0]


def counts_in_a_default(x, memo={}):  # noqa: B006
    memo["k"] = memo.get("k", 0) + 1
    return np.sum(x**2)


def keeps_a_constant(x):
    if "c" not in stats:
        stats["c"] = np.arange(3.0)
    return np.sum(stats["c"] * x)


def _closure():
    n = 0

    def f(x):
        def bump():
            nonlocal n
            n += 1

        bump()
        return np.sum(x**2) * n

    return f


counts_in_a_closure = _closure()

FUNCTIONS = [
    *(counts_globally, binds_a_global_name, appends, appends_containers, appends_in_a_loop, appends_until),
    *(reads_what_it_appends, stores_items, stores_attributes, stores_and_reads_within_a_call, stores_on_one_path),
    *(counts_on_itself, counts_on_a_class, counts_in_a_list, counts_in_a_default, keeps_a_constant),
    *(counts_in_a_closure, objective.__call__),
]
MODES: dict[str, Callable[..., Any]] = {
    "call": lambda f, **options: tg.differentiable(f, **options)(X),
    "value_and_grad": lambda f, **options: tg.value_and_grad(f, **options)(X)[0],
    "vjp": lambda f, **options: _pulled_twice(*tg.vjp(f, X, **options)),
    "jvp": lambda f, **options: tg.jvp(f, (X,), (np.ones(3),), **options)[0],
    "linearize": lambda f, **options: _pulled_twice(*tg.linearize(f, X, **options), np.ones(3)),
    "grad": lambda f, **options: tg.grad(f, **options)(X),
    "jacobian": lambda f, **options: tg.jacobian(f, **options)(X),
    "hessian": lambda f, **options: tg.hessian(f, **options)(X),
    "hvp": lambda f, **options: tg.hvp(f, (X,), (np.ones(3),), **options),
}


def _pulled_twice(value: Any, pullback: Callable[[Any], Any], bar: Any = 1.0) -> Any:
    assert np.array_equal(pullback(bar), pullback(bar))
    return value


@pytest.fixture(autouse=True)
def _fresh() -> None:
    reset()


def reset() -> None:
    """Everything that the functions above store into, as it was."""
    global count
    count = 0
    globals().pop("fresh", None)
    log.clear()
    stats.clear()
    stats.update(n=0, last=None)
    vars(settings).clear()
    settings.n, settings.hist = 0, []
    box[0] = Made.number = counts_on_itself.calls = 0
    counts_in_a_default.__defaults__[0].clear()
    counts_in_a_closure.__closure__[0].cell_contents = 0
    objective.__init__()


def _state() -> Any:
    found = (count, globals().get("fresh"), log, stats, vars(settings), box, Made.number, counts_on_itself.calls)
    more = counts_in_a_default.__defaults__, counts_in_a_closure.__closure__[0].cell_contents, vars(objective)
    return copy.deepcopy((found, more))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and np.array_equal(a, b)
    return type(a) is type(b) and a == b


def _check(function: Callable[..., Any], modes: list[str], **options: Any) -> None:
    expected = [(function(X), _state()) for _ in range(2)]
    for mode in modes:
        reset()
        for value, state in expected:
            found = MODES[mode](function, **options)
            assert _same(_state(), state), mode
            if mode in list(MODES)[:5]:
                assert _same(found, value), mode


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", "")


@pytest.mark.parametrize("function", FUNCTIONS, ids=_name)
def test_stored_once_in_each_mode(function: Callable[..., Any]) -> None:
    _check(function, list(MODES), backend="python")


@pytest.mark.compiled
@pytest.mark.parametrize("function", FUNCTIONS, ids=_name)
def test_stored_once_by_compiled_code(function: Callable[..., Any]) -> None:
    _check(function, list(MODES))


def test_stored_once_by_compiled_code_of_a_sample() -> None:
    _check(appends_in_a_loop, ["value_and_grad"])


# ---- derivatives ---------------------------------------------------------------------------------------------------


def test_what_is_read_back_carries_its_derivative() -> None:
    assert np.array_equal(tg.grad(stores_and_reads_within_a_call, backend="python")(X), np.full(3, 16.0))
    assert np.array_equal(tg.grad(stores_attributes, backend="python")(X), np.full(3, 1.0))
    assert np.array_equal(tg.grad(stores_attributes, backend="python")(X), np.full(3, 2.0))


class Average:
    def __init__(self):
        self.mean = 0.0

    def fun(self, x):
        self.mean = 0.9 * self.mean + 0.1 * np.sum(x)
        return self.mean**2


def memoised(x, n):
    if n not in stats:
        stats[n] = np.sum(x) * n
    return stats[n] ** 2


def test_a_derivative_that_goes_on_in_the_next_call_is_refused() -> None:
    average = Average()
    with pytest.raises(NotDifferentiable, match=r"depends on 'self\.mean'") as caught:
        tg.grad(average.fun, backend="python")(X)
    assert "Pass self.mean as an argument" in caught.value.advice
    assert average.mean == 0.0
    assert np.array_equal(tg.grad(memoised, backend="python")(X, 3), np.full(3, 36.0))
    with pytest.raises(NotDifferentiable, match=r"depends on 'stats\[3\]'"):
        tg.grad(memoised, backend="python")(X, 3)


def changes_an_argument(values):
    values[0] = 3.0
    return values[0] * values[1]


def test_an_argument_that_is_changed_has_the_gradient_on_entry() -> None:
    values = [1.0, 2.0]
    assert tg.grad(changes_an_argument, backend="python")(values) == [0.0, 3.0]
    assert values == [3.0, 2.0]


def keeps(x):
    settings.last = x
    return np.sum(x * x)


@pytest.mark.parametrize("backend", ["python", pytest.param("auto", marks=pytest.mark.compiled)])
def test_the_very_object_is_stored(backend: Any) -> None:
    x = X.copy()
    tg.grad(keeps, backend=backend)(x)
    assert settings.last is x


# ---- errors --------------------------------------------------------------------------------------------------------


class Failing:
    def __init__(self):
        self.n, self.calls = 0, []

    def fun(self, x):
        self.n += 1
        self.calls.append(x.copy())
        y = math.log(x[0] - 1.0)
        self.n += 1
        return y * np.sum(x)


@pytest.mark.parametrize("mode", MODES)
def test_an_error_leaves_what_plain_python_leaves(mode: str) -> None:
    failing = Failing()
    with pytest.raises(ValueError, match="math domain error"):
        MODES[mode](failing.fun, backend="python")
    assert failing.n == 1
    assert len(failing.calls) == 1


def large(x, n):
    box[0] += 1
    return x * float(2**n)


@pytest.mark.compiled
def test_a_fallback_to_python_stores_once() -> None:
    with pytest.warns(tg.PerformanceWarning, match="64 bits"):
        assert tg.grad(large)(2.0, 100) == 2.0**100
    assert box == [1]


# ---- what is refused -----------------------------------------------------------------------------------------------


def in_any_order(x):
    total = 0.0
    for i in prange(len(x)):
        log.append(x[i])
        total += x[i] ** 2
    return total


def two_names(a, b):
    a["n"] += 1
    return b["n"] * a["v"]


def stores_a_function(x):
    settings.f = lambda: x
    return x * x


def test_refused_with_the_reason() -> None:
    with pytest.raises(NotDifferentiable, match="prange stores into 'log'"):
        tg.grad(in_any_order, backend="python")(X)
    given = {"n": 1, "v": 2.0}
    with pytest.raises(AliasError, match="another name among the arguments"):
        tg.grad(two_names, backend="python")(given, given)
    assert given == {"n": 1, "v": 2.0}
    with pytest.raises(NotDifferentiable, match="stores into log, which code without Python"):
        tg.differentiable(appends).njit(X)
    with pytest.raises(NotDifferentiable, match="a function that is made inside"):
        tg.grad(stores_a_function, backend="python")(2.0)


def test_on_a_tape() -> None:
    counted, kept = (tg.differentiable(f, backend="python") for f in (counts_in_a_list, appends))
    with tg.GradientTape() as tape:
        x = tg.Variable(X)
        y = counted(x)
    assert np.array_equal(tape.gradient(y, x), 2 * X)
    assert box == [1]
    with tg.GradientTape(), pytest.raises(NotDifferentiable, match="leaves the tape"):
        kept(tg.Variable(X))
    assert log == []


# ---- programs and their texts --------------------------------------------------------------------------------------


def test_a_program_does_not_depend_on_what_it_counts() -> None:
    function = tg.differentiable(objective.__call__, backend="python")
    texts = set()
    for k in range(4):
        function.value_and_grad(X * k)
        texts.add(id(function._last_used()))
    assert len(texts) <= 2  # one while there is no best point
    assert objective.nfev == 4


def test_the_docstring_says_what_is_stored() -> None:
    text = tg.differentiable(counts_in_a_list).inspect(X).joint
    assert "Its last results are what the call stores: box[0]." in text


def test_a_program_does_not_depend_on_the_items_it_counts() -> None:
    function = tg.differentiable(counts_in_a_list, backend="python")
    programs = set()
    for _ in range(4):
        function.value_and_grad(X)
        programs.add(id(function._last_used()))
    assert len(programs) == 1
    assert box == [4]


def reads_what_may_not_be_there(x: np.ndarray) -> float:
    global begun
    if x[0] > 99.0:
        begun = 2.0
    return np.sum(x * x) * begun


def test_a_variable_may_come_to_be_between_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    function = tg.differentiable(reads_what_may_not_be_there, backend="python")
    with pytest.raises(NotDifferentiable, match="bound on some paths only"):
        function.grad(X)
    monkeypatch.setitem(globals(), "begun", 3.0)
    assert np.array_equal(function.grad(X), 6 * X)


def counts_from_where_it_is_bound(x: np.ndarray) -> float:
    global counted
    try:
        counted = counted + 1.0  # type: ignore[name-defined]
    except NameError:
        counted = 2.0
    return np.sum(x * x) * counted


def test_a_variable_that_the_first_call_binds_is_there_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(globals(), "counted", raising=False)
    function = tg.differentiable(counts_from_where_it_is_bound, backend="python")
    assert np.array_equal([function.grad(X) for _ in range(3)], [4 * X, 6 * X, 8 * X])
    del globals()["counted"]
