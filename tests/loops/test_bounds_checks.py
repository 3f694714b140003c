"""Compiled text holds its own checks of indices: without numba's, what is out of bounds still raises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.backend.numba.build import build_numba, decorator_text
from tapegen.backend.printer.module import emit
from tapegen.loops.pipeline import lower_to_loops
from tests.nests_reader import read, uncompiled

PROGRAM = """
def f(x, m, ids, k, which):
    s = 0.0
    if which == 0:
        s = x[k]
    if which == 1:
        x[k] = 2.0
    if which == 2:
        x[k] += 2.0
    if which == 3:
        for i in range(4):
            s = s + x[i + k]
    if which == 4:
        for i in range(3, -1, -1):
            x[i - k] = 1.0
    if which == 5:
        y = x[ids]
        s = np.sum(y)
    if which == 6:
        row = m[k]
        s = row[0] + np.sum(row)
    if which == 7:
        m[:, k] = x[:3]
    if which == 8:
        v = x[1:3]
        s = v[k]
    if which == 9:
        m[1, k] = 1.0
    if which == 10:
        x[ids] = 3.0
    return s
"""


def outcome(func: Any, k: int, which: int) -> tuple[Any, ...]:
    x, m, ids = np.arange(4.0), np.arange(6.0).reshape(3, 2), np.array([0, k])
    try:
        s = func(x, m, ids, k, which)
    except IndexError:
        return ("IndexError",)
    return (float(s), x.tolist(), m.tolist())


def as_compiled(args: tuple[Any, ...]) -> Any:
    return build_numba(emit(lower_to_loops(read(PROGRAM, args)), decorator=decorator_text()), from_start=True)


def as_python(args: tuple[Any, ...]) -> Any:
    return uncompiled(PROGRAM, args)


@pytest.mark.parametrize("build", [as_python, pytest.param(as_compiled, marks=pytest.mark.compiled)])
def test_indices_are_checked_by_the_text(build: Any) -> None:
    args = (np.arange(4.0), np.arange(6.0).reshape(3, 2), np.array([0, 1]), 0, 0)
    func = build(args)
    namespace: dict[str, Any] = {"np": np}
    exec(PROGRAM, namespace)
    for which in range(11):
        for k in (-(10**6), -7, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 10**6):
            theirs = outcome(namespace["f"], k, which)
            ours = outcome(func, k, which)
            assert ours[0] == theirs[0], (which, k)
            if theirs[0] != "IndexError":
                assert ours == theirs, (which, k)


def empty(x: np.ndarray, n: int) -> float:
    return np.sum(x) + np.empty(n).size


def zeros(x: np.ndarray, n: int) -> float:
    a = np.zeros((2, n))
    a[:, 1:] = x[0]
    return np.sum(a)


def between(x: np.ndarray, n: int) -> float:
    return np.sum(np.linspace(0.0, 1.0, n)) * x[0]


@pytest.mark.compiled
@pytest.mark.parametrize("function", [empty, zeros, between])
def test_new_arrays_have_no_negative_sizes(function: Any) -> None:
    f = differentiable(function, backend="numba")
    x = np.ones(3)
    np.testing.assert_allclose(f.grad(x, 3), differentiable(function, backend="python").grad(x, 3))
    with pytest.raises(ValueError, match="negative"):
        f.grad(x, -2)
