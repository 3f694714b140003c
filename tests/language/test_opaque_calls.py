"""Functions that tapegen does not know: called as they are where no derivative passes, refused where one does."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.signal
import scipy.special

from tapegen import differentiable
from tapegen.errors import MissingRule, TapegenError
from tests.judged import both, right

X = np.array([0.5, -1.5, 2.0, 0.7])
CALLS: list[int] = []


def smoothed(x: np.ndarray, n: int) -> float:
    window = np.hanning(n)
    window /= window.sum()  # a result of its own, every time
    total = 0.0
    for k in range(n - 2):
        total += x[k] ** 2 * window[k + 1]
    return total


def written_in_a_loop(x: np.ndarray) -> float:
    total = 0.0
    for k in range(3):
        window = np.hanning(5)
        window[1:] += x * k
        total += (window * window).sum()
    return total


def binomial(x: float) -> float:
    return x * scipy.special.comb(5, 2) + x * x * scipy.special.comb(6, 3, exact=True)


def of_the_loop(x: float, n: int) -> float:
    total = 0.0
    for k in range(n):
        total += scipy.special.comb(n, k, exact=True) * x**k
    return total


def weighted(x: np.ndarray, phases: np.ndarray) -> float:
    return (x * np.unwrap(phases)).sum()


def stored_table(name: str, n: int) -> np.ndarray:
    """Not in the language: it fills what it cannot find."""
    CALLS.append(n)
    table = {"squares": [k * k for k in range(10)]}
    try:
        return np.array(table[name][:n], dtype=float)
    except KeyError:
        return np.zeros(n)


def tabulated(x: np.ndarray, name: str) -> float:
    return (x * x * stored_table(name, 4)).sum()


def checksum(x: float) -> float:
    return x * x * (zlib.crc32(b"tapegen") % 7)


def filtered(x: np.ndarray) -> float:
    b, a = scipy.signal.butter(2, 0.3)
    y = np.zeros_like(x)
    for k in range(x.size):
        y[k] = b[0] * x[k]
        for j in range(1, 3):
            if k >= j:
                y[k] += b[j] * x[k - j] - a[j] * y[k - j]
    return (y * y).sum()


@both
def test_calls_on_known_values_are_made_before(backend: str) -> None:
    derived = right(smoothed, X, 6, backend=backend)
    derived.grad(X, 6)
    right(smoothed, X, 5, backend=backend)
    right(written_in_a_loop, X, backend=backend)
    right(binomial, 1.5, backend=backend)
    right(checksum, 1.5, backend=backend)
    right(filtered, X, backend=backend)


@both
def test_python_functions_outside_of_the_language(backend: str) -> None:
    for name in ("squares", "others"):
        right(tabulated, X, name, backend=backend)
    derived = differentiable(tabulated, backend=backend)
    derived.grad(X, "squares")
    CALLS.clear()
    derived.grad(X, "squares")
    assert len(CALLS) <= 2  # once to see that its result has the same type, once for the program


def test_calls_on_computed_values_run_in_place() -> None:
    right(of_the_loop, 0.5, 4, backend="python")
    right(weighted, X, np.array([0.1, 4.0, 9.0, 15.0]), backend="python")


def smooth(x: np.ndarray) -> float:
    return scipy.signal.medfilt(x).sum()


def windows(x: np.ndarray) -> float:
    y = x * 1.0
    rows = np.lib.stride_tricks.as_strided(y, (2, 2), (8, 8))
    y[0] = 3.0
    return (rows * rows).sum()


def window(x: float) -> float:
    return x * float(scipy.signal.windows.tukey(5, x)[1])


@pytest.mark.parametrize("func", [smooth, windows, window])
def test_active_values_and_shared_memory_are_refused(func: Any) -> None:
    with pytest.raises(MissingRule, match=r"has no derivative rule|looks at memory several times") as caught:
        differentiable(func).grad(1.5 if func is window else X)
    assert caught.value.span is not None
    assert caught.value.advice


def cubed(p: np.ndarray) -> np.ndarray:
    return p**3 - 1.0


def fitted(x: float) -> float:
    return x * scipy.optimize.least_squares(cubed, [2.0]).x[0]


def fitted_inside(x: float) -> float:
    return scipy.optimize.curve_fit(lambda t, k: k * t, np.arange(3.0), x * np.arange(3.0))[0][0]


@pytest.mark.parametrize("func", [fitted, fitted_inside])
def test_solvers_without_a_rule_are_named(func: Any) -> None:
    with pytest.raises(MissingRule, match=r"is given a function to call, and has no derivative rule") as caught:
        differentiable(func, backend="python").grad(2.0)
    assert "scipy.optimize.minimize(" in caught.value.advice


def failing(x: float, n: int) -> float:
    return x * float(np.hanning(n)[3])


@both
def test_what_fails(backend: str) -> None:
    right(failing, 2.0, 8, backend=backend)
    with pytest.raises((IndexError, TapegenError)):
        differentiable(failing, backend=backend).grad(2.0, 2)
