"""The caller's arrays, objects and generators around each derivative.

A call that raises leaves them as plain Python leaves them, half done, whatever derivative was asked for; a call whose
arguments share memory is refused before anything is stored.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import AliasError

X = np.array([0.3, -0.7, 1.1])
counts = {"n": 0}

Derivative = Callable[..., Any]


def _directions(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return (np.ones(3), *[None] * (len(args) - 1))


DERIVATIVES: dict[str, Derivative] = {
    "grad": lambda f, args, **options: tg.grad(f, **options)(*args),
    "vjp": lambda f, args, **options: tg.vjp(f, *args, **options),
    "jvp": lambda f, args, **options: tg.jvp(f, args, _directions(args), **options),
    "jacobian": lambda f, args, **options: tg.jacobian(f, **options)(*args),
    "jacobian forward": lambda f, args, **options: tg.jacobian(f, mode="forward", **options)(*args),
    "jacobian reverse": lambda f, args, **options: tg.jacobian(f, mode="reverse", **options)(*args),
    "hessian": lambda f, args, **options: tg.hessian(f, **options)(*args),
    "hvp": lambda f, args, **options: tg.hvp(f, args, _directions(args), **options),
    "linearize": lambda f, args, **options: tg.linearize(f, *args, **options)[1](*_directions(args)),
}


def stores_and_stops(x, log, rng):
    for i in range(5):
        x[i] = x[i] * rng.normal()
        log.append(i)
        counts["n"] += 1
    return float(np.sum(x * x))


def draws_and_stops(x, log, rng):
    x += rng.normal(size=3)
    log["n"] = 1
    return float(np.sum(x)) * log["missing"]


def stops_in_the_library(x, log, rng):
    x[0] = 9.0
    counts["n"] = 7
    return float(np.sum(np.linalg.solve(np.zeros((3, 3)), x)))


CASES: list[tuple[Callable[..., float], Any, type[Exception]]] = [
    (stores_and_stops, [0], IndexError),
    (draws_and_stops, {"n": 0}, KeyError),
    (stops_in_the_library, [0], np.linalg.LinAlgError),
]


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize(("f", "log", "error"), CASES, ids=[f.__name__ for f, _, _ in CASES])
def test_what_a_call_leaves_that_raises(
    f: Callable[..., float], log: Any, error: type[Exception], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state_after(call: Callable[[tuple[Any, ...]], object]) -> list[Any]:
        monkeypatch.setitem(counts, "n", 0)
        x, logged, rng = args = (X.copy(), copy.deepcopy(log), np.random.default_rng(3))
        with pytest.raises(error):
            call(args)
        return [x.tolist(), logged, counts["n"], rng.bit_generator.state]

    plain = state_after(lambda args: f(*args))
    derived = state_after(lambda args: DERIVATIVES[name](f, args, backend="python"))
    assert derived == plain


def writes_one(x, y):
    x[0] = y[1] * 2.0
    x[1] = 3.0
    return float(np.sum(x * y))


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("view", [lambda a: a, lambda a: a[::-1]], ids=["same", "reversed"])
def test_arguments_that_share_memory(name: str, view: Callable[[np.ndarray], np.ndarray]) -> None:
    a = X.copy()
    with pytest.raises(AliasError, match="'x' is written and shares memory with 'y'") as caught:
        DERIVATIVES[name](writes_one, (a, view(a)), backend="python")
    np.testing.assert_array_equal(a, X)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


def test_a_batch_whose_arguments_share_memory() -> None:
    a = np.stack([X, 2.0 * X])
    with pytest.raises(AliasError, match="'x' is written and shares memory with 'y'"):
        tg.batch(writes_one, backend="python").jacobian(a, a)
    np.testing.assert_array_equal(a, [X, 2.0 * X])
