"""How large integers become: counters and indices are never checked, products of loops are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.analysis.integer_overflow import overflowing
from tapegen.errors import BadArgument
from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Store
from tapegen.loops.legalize.overflow_checks import insert_overflow_checks
from tests.nests_reader import read


def counts(x: np.ndarray, n: int) -> float:
    passes, total = 0, 0.0
    while total < n:
        total += x[passes % x.size] ** 2 + 1.0
        if total > 3.0:
            passes += 2
    return total * passes


def bisects(x: np.ndarray, n: int) -> float:
    low, high = 0, x.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if x[middle] > 0.0:
            high = middle
        else:
            low = middle
    return x[low] * low + x[high] * n * high


def shuffles(x: np.ndarray, n: int) -> float:
    seed, total = n, 0.0
    for _ in range(n):
        seed = (1103515245 * seed + 12345) % 2**31
        total += x[seed % x.size] * seed
    return total


def flat_index(x: np.ndarray, n: int) -> float:
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += x[(i * n + j) % x.size] * (i * n + j)
    return total


def factorial(x: np.ndarray, n: int) -> float:
    product = 1
    for k in range(1, n):
        product *= k
    return x.sum() / product


def fibonacci(x: np.ndarray, n: int) -> float:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return x.sum() * b


def cubes(x: np.ndarray, n: int) -> float:
    return x.sum() * (n * n * n)


def towers(x: np.ndarray, n: int) -> float:
    return x.sum() * (n**63 + (n << 40) + (n % 100) ** 9)


def packed_triangle(x: np.ndarray, n: int) -> float:
    total = 0.0
    for _ in range(n):
        place = 0
        for i in range(3):
            row = 0.0
            for _ in range(i + 1):
                row += x[place] ** 2
                place += 1
            total += row * row
    return total


def weights_grow(x: np.ndarray, n: int) -> float:
    weight, total = 1, 0.0
    for k in range(12):
        total += x[k % x.size] ** 2 * weight
        weight = weight * n + k % 2
    return total


X = np.linspace(-1.0, 1.0, 7)


@pytest.mark.parametrize("func", [counts, bisects, shuffles, flat_index, packed_triangle])
def test_no_checks(func: Callable[..., Any]) -> None:
    assert "64 bits" not in str(differentiable(func).inspect(X, 5).compiled)


@pytest.mark.parametrize("func", [factorial, fibonacci, cubes, towers, weights_grow])
def test_checks(func: Callable[..., Any]) -> None:
    assert "an integer has more than 64 bits" in str(differentiable(func).inspect(X, 5).compiled)


@pytest.mark.compiled
@pytest.mark.parametrize(("func", "n"), [(factorial, 30), (fibonacci, 120), (cubes, 2**30), (cubes, 2**40)])
def test_large_results_are_right(func: Callable[..., Any], n: int) -> None:
    with pytest.warns(UserWarning, match="an integer has more than 64 bits"):
        assert differentiable(func)(X + 1.0, n) == pytest.approx(func(X + 1.0, n), rel=1e-14)


@pytest.mark.compiled
def test_no_tape_holds_a_number_that_wrapped_around() -> None:
    func = differentiable(weights_grow)
    _, pullback = func.vjp(X, 3)
    np.testing.assert_allclose(pullback(1.0), func.grad(X, 3), rtol=1e-14)
    with pytest.warns(UserWarning, match="64 bits"), pytest.raises(BadArgument):
        func.vjp(X, 10**4)
    with pytest.warns(UserWarning, match="64 bits"), pytest.raises(BadArgument):
        differentiable(weights_grow).grad(X, 10**4)  # a function of its own: each says once why it runs uncompiled


def found_in(text: str, *args: Any, wide: bool = False) -> int:
    """How many operations of a program may need more than 64 bits."""
    return len(overflowing(read(text, args), wide=wide))


def test_large_arguments_make_large_products() -> None:
    text = "def f(x, n):\n    return x[0]*(n*n)\n"
    assert found_in(text, X, 3) == 0
    assert found_in(text, X, 3, wide=True) == 1


def test_many_steps_of_an_argument_add_up() -> None:
    counts = "def f(x, n):\n    s = 0\n    for k in range(n):\n        s = s + 3\n    return x[0]*s\n"
    assert found_in(counts, X, 3) == 0
    assert found_in(counts.replace("s + 3", "s + n"), X, 3) == 1


def test_what_is_stored_into_an_array_is_a_number() -> None:
    text = "def f(x, n):\n    x[0] = n*n*n\n    return x[0]\n"
    stored = insert_overflow_checks(read(text, (X, 3)), wide=False).body[0]
    assert isinstance(stored, Store) and isinstance(stored.value, Call) and stored.value.func is intrinsics.exact
