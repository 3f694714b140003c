"""Functions of many kinds that are built into libraries to be called wrongly: see `tests.attack.libraries`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.libraries import openblas


@dataclass(frozen=True)
class Case:
    """One function of a library.

    Attributes
    ----------
    function : callable
    args : tuple
        Arguments that are right.
    wrt : tuple of str
    modes : sequence of str, optional
        By default all that it has.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    wrt: tuple[str, ...]
    modes: Sequence[str] | None = None


@dataclass(frozen=True)
class Library:
    """Functions that are built together."""

    cases: tuple[Case, ...]
    blas: Callable[[], str] = lambda: "builtin"


def polynomial(x: float, n: int, flag: bool) -> float:
    total = 0.0
    for i in range(min(n, 20)):
        total += x**i if flag else x * i
    return total


def indexed(x: np.ndarray, where: float, k: int) -> float:
    return x[int(where)] * x[k] + x[k // 2]


def weighted(x: np.ndarray, w: np.ndarray) -> float:
    return np.sum(np.sin(x) * w)


def scaled(x: np.ndarray, y: np.ndarray) -> float:
    for i in range(x.shape[0]):
        y[i] = 2.0 * x[i] * y[i]
    return np.sum(y)


def crossed(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] ** 2 * b[j, i]
    return total


def transposed(a: np.ndarray, n: int) -> np.ndarray:
    return np.reshape(a.T * 2.0, n)[::2] + a.size


def narrow(x: np.ndarray, factor: np.float32, mask: np.ndarray) -> np.float32:
    total = np.float32(0.0)
    for i in range(x.shape[0]):
        if mask[i]:
            total += x[i] * x[i] * factor
    return total


def rotated(z: np.ndarray, c: complex) -> float:
    return np.sum(np.abs(z * c + z[::-1]) ** 2)


def phases(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    return z * np.exp(1j * x)


def gathered(x: np.ndarray, index: np.ndarray, bins: np.ndarray) -> float:
    total = 0.0
    for i in range(index.shape[0]):
        total += x[index[i]] * bins[i % bins.shape[0]]
    return total


def several(x: np.ndarray, n: int) -> tuple[np.ndarray, float, np.ndarray]:
    y = np.zeros(n)
    for i in range(n):
        y[i] = x[i % x.shape[0]] ** 2
    return y, np.sum(y), np.outer(x, y)


def collected(x: np.ndarray) -> float:
    parts = []
    y = x
    while np.sum(y * y) > 0.1:
        parts.append(y)
        y = np.sin(y) * 0.7
    total = 0.0
    for part in parts:
        total += np.sum(part**3)
    return total


def shrinking(x: np.ndarray) -> float:
    total = 0.0
    while x.size > 1:
        total += np.sum(np.sin(x) * x)
        x = x[1:] * x[:-1]
    return total


def nested(x: float, n: int) -> float:
    return x if n <= 0 else np.sin(nested(x, n - 1)) * x


def multiplied(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> float:
    return np.sum((a @ b) ** 2) + (a @ x) @ (a @ x)


def solved(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.linalg.solve(a, x) * np.linalg.det(a)


_X = np.linspace(0.3, 1.7, 6)
_A = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
_M = _A @ _A.T + np.eye(3)

LIBRARIES: dict[str, Library] = {
    "scalars": Library((Case(polynomial, (0.5, 3, True), ("x",)), Case(indexed, (_X, 2.5, 3), ("x",)))),
    "vectors": Library(
        (
            Case(weighted, (np.repeat(_X, 2)[::2], _X[::-1].copy()), ("x", "w")),
            Case(scaled, (_X, _X * 0.5), ("x", "y")),
        )
    ),
    "matrices": Library(
        (
            Case(crossed, (np.repeat(_A, 2, 1)[:, ::2], np.asfortranarray(_A.T)), ("a", "b")),
            Case(transposed, (_A, 12), ("a",), ("value", "split", "jvp")),
        )
    ),
    "single": Library(
        (
            Case(
                narrow,
                (_X.astype("float32"), np.float32(1.5), np.array([True, False, True, True, False, True])),
                ("x", "factor"),
            ),
        )
    ),
    "complexes": Library(
        (
            Case(rotated, (_X * (1 + 0.5j), 0.5 - 2j), ("z", "c")),
            Case(phases, ((_X * 1j).astype("complex64"), _X.astype("float32")), ("z", "x"), ("value", "split", "jvp")),
        )
    ),
    "integers": Library((Case(gathered, (_X, np.array([0, 5, 2, 2]), np.array([1, 2, 3], "int16")), ("x",)),)),
    "results": Library(
        (
            Case(several, (_X, 4), ("x",), ("value", "split", "jvp")),
            Case(collected, (_X,), ("x",), ("grad", "split")),
            Case(shrinking, (_X,), ("x",), ("grad", "split")),
            Case(nested, (0.7, 3), ("x",), ("grad",)),
        )
    ),
    "products": Library((Case(multiplied, (_A, _A.T.copy(), _X[:4].copy()), ("a", "b", "x")),)),
    "factorised": Library(
        (
            Case(multiplied, (_A, _A.T.copy(), _X[:4].copy()), ("a", "b", "x"), ("grad", "split")),
            Case(solved, (_M, _X[:3].copy()), ("a", "x"), ("value", "split")),
        ),
        openblas,
    ),
}

__all__ = ["LIBRARIES", "Case", "Library"]
