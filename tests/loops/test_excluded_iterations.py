"""Loops over pairs without one of them (`loops/vectorize/excluded_iterations.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen.backend.printer.module import emit
from tapegen.loops.vectorize.excluded_iterations import split_excluded_iterations
from tests.nests_reader import read

UPWARDS = """
def f(x, n):
    s = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                s = 0.9 * s + x[i] * x[j]
    return s
"""

DOWNWARDS = """
def f(x, n):
    s = 0.0
    for i in range(n - 1, -1, -1):
        for j in range(n - 1, -1, -1):
            if not j == i:
                s = 0.9 * s + x[i] * x[j]
    return s
"""

BOTH_WAYS = """
def f(x, n):
    s = 0.0
    for i in range(1, n + 1):
        for j in range(n, 0, -1):
            if i == j:
                pass
            else:
                s = 0.9 * s + x[i - 1] * x[j - 1]
    return s
"""

SPLIT = [UPWARDS, DOWNWARDS, BOTH_WAYS]

OTHER_RANGE = """
def f(x, n):
    s = 0.0
    for i in range(n + 1):
        for j in range(n):
            if i != j:
                s = 0.9 * s + x[j] * i
    return s
"""

MOVED = """
def f(x, n):
    s = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                s = 0.9 * s + x[j] * i
        n = n - 1
    return s
"""

CHANGED = """
def f(x, n):
    s = 0.0
    for i in range(n):
        i = i + 1
        for j in range(n):
            if i != j:
                s = 0.9 * s + x[j] * i
    return s
"""

LEFT = """
def f(x, n):
    s = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                s = 0.9 * s + x[j] * i
                if s > 1.0:
                    break
    return s
"""

READ_LATER = """
def f(x, n):
    s = 0.0
    j = 0
    for i in range(n):
        for j in range(n):
            if i != j:
                s = 0.9 * s + x[j] * i
        s = s + j
    return s
"""

SOMETHING_ELSE = """
def f(x, n):
    s = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                s = 0.9 * s + x[j] * i
            s = s + 1.0
    return s
"""

ELEMENT = """
def f(x, n):
    s = 0.0
    k = np.zeros(1, np.int64)
    k[0] = n
    for i in range(k[0]):
        for j in range(k[0]):
            if i != j:
                s = 0.9 * s + x[j] * i
        k[0] = k[0] - 1
    return s
"""

TOTAL = """
def f(x, n):
    s = 0.0
    k = np.ones(n, np.int64)
    for i in range(np.sum(k)):
        for j in range(np.sum(k)):
            if i != j:
                s = 0.9 * s + x[j] * i
        k[i] = 0
    return s
"""

STAYING = [OTHER_RANGE, MOVED, CHANGED, LEFT, READ_LATER, SOMETHING_ELSE, ELEMENT, TOTAL]


@pytest.mark.parametrize("text", SPLIT + STAYING)
def test_iterations_keep_their_order(text: str) -> None:
    x = np.random.default_rng(3).normal(size=8)
    program = read(text, (x, 4))
    found = split_excluded_iterations(program)
    assert (found is program) == (text in STAYING)
    split, given = runs(emit(found).text), runs(text)
    for n in (0, 1, 2, 7):
        assert split(x, n) == given(x, n)


def runs(text: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"np": np, "njit": lambda *_, **__: lambda func: func}
    exec(text.replace("from numba import njit", ""), namespace)
    func: Callable[..., Any] = namespace["f"]
    return func
