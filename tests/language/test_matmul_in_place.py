"""`a @= b` stores the product into `a`, and does not broadcast it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.judged import both, raises_as_python, right

M = np.array([[0.7, 1.4, 1.2], [1.1, 0.2, 0.6], [0.8, 0.5, 1.3]])
V = np.array([0.3, 0.5, 0.7])
STACK = np.stack([M, M.T])


def whole(a, b):
    a @= b
    return np.sum(a**2)


def of_itself(a):
    c = a * 1.0
    d = c
    c @= c
    d @= c.T
    return np.sum(c**2)


def through_a_view(a, b):
    c = a * 1.0
    top = c[1:]
    top @= b
    c[0] @= b
    return np.sum(c**3)


def in_a_list(a, b):
    items = [a * 1.0]
    items[0] @= b
    return np.sum(items[0] ** 2)


def repeated(a, b):
    c = a * 1.0
    for _ in range(3):
        c @= b
    return np.sum(c)


def by_a_list(a):
    c = a * 1.0
    c @= [[1.0, 2.0, 3.0], [0.0, 1.0, 0.0], [1.0, 1.0, 2.0]]
    return np.sum(c**2)


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (whole, (M, M.T)),
    (whole, (V, M)),
    (whole, (STACK, M)),
    (whole, (STACK, STACK[:1])),
    (whole, (M[:2], M)),
    (of_itself, (M,)),
    (through_a_view, (M, M.T)),
    (in_a_list, (M, M.T)),
    (repeated, (M, M.T)),
    (by_a_list, (M,)),
]


@pytest.mark.parametrize(("function", "args"), CASES)
@both
def test_gradients(function: Callable[..., Any], args: tuple[Any, ...], backend: str) -> None:
    right(function, *args, backend=backend)


@pytest.mark.parametrize("args", [(M, V), (V, V), (M[:2], M[:, :1]), (M, STACK), (np.ones((3, 3), int), M)])
@both
def test_errors_of_numpy(args: tuple[Any, ...], backend: str) -> None:
    raises_as_python(whole, *args, backend=backend)
