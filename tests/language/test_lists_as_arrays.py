"""Lists and tuples of numbers among the arrays that a function takes, as NumPy takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable

X = np.array([0.7, -0.4, 1.2])
M = np.array([[0.1, 0.9, -0.3], [1.1, 0.2, 0.6]])

PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "a zero before": lambda x, m: np.concatenate(([0.0], x)),
    "numbers before": lambda x, m: np.concatenate(([0.0, x[1]], x)),
    "a tuple behind": lambda x, m: np.concatenate((x, (x[0], 2.0))),
    "nothing before": lambda x, m: np.concatenate(([], x)),
    "integers before": lambda x, m: np.concatenate(([1, 2], x)),
    "rows before": lambda x, m: np.concatenate(([[1.0, 2.0, x[0]], [x[1], 0.0, 1.0]], m)),
    "a column before": lambda x, m: np.concatenate(([[1.0], [x[2]]], m), axis=1),
    "in a row": lambda x, m: np.concatenate(([[0.0, x[1]]], x), axis=None),
    "hstack": lambda x, m: np.hstack((x[0], [x[1], 3.0], x)),
    "vstack": lambda x, m: np.vstack(([1.0, 2.0, x[1]], m, [[x[0], 0.0, 1.0]])),
    "stack": lambda x, m: np.stack(([1.0, 2.0, x[1]], x), axis=1),
    "column_stack": lambda x, m: np.column_stack(([1.0, 2.0, x[1]], x)),
    "dstack": lambda x, m: np.dstack(([1.0, 2.0, x[1]], x)),
    "append": lambda x, m: np.append([1.0, x[0]], [2.0, x[1]]),
    "select": lambda x, m: np.select([x > 0.5, [False, True, False]], [[1.0, 2.0, x[0]], x * 2], 1.0),
    "meshgrid": lambda x, m: np.meshgrid([1.0, x[0]], x)[0],
    "broadcast_arrays": lambda x, m: np.broadcast_arrays([1.0, 2.0, x[0]], m)[0] * m,
    "einsum": lambda x, m: np.einsum("i,ij->j", [1.0, x[0]], m),
    "atleast_2d": lambda x, m: np.atleast_2d([1.0, x[0]]),
}
each = pytest.mark.parametrize("program", [pytest.param(program, id=name) for name, program in PROGRAMS.items()])


@each
def test_value_and_gradient(program: Callable[[Any, Any], Any]) -> None:
    value = differentiable(program, backend="python")(X, M)
    np.testing.assert_array_equal(value, program(X, M))
    check_grads(program, X, M, modes=("forward", "reverse"), backend="python")


def several(x: Any, m: Any) -> Any:
    padded = np.concatenate(([0.0, x[0]], x, (1.0,)))
    rows = np.vstack(([1.0, 2.0, x[1]], m))
    columns = np.column_stack(([1.0, 2.0, x[1]], np.hstack((x[0], [x[1], 3.0]))))
    return np.sum(np.sin(padded)), np.sum(rows[0] * rows[1]), columns


def test_compiled() -> None:
    for found, want in zip(differentiable(several, backend="numba")(X, M), several(X, M), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-14)
    check_grads(lambda x, m: sum(np.sum(part) for part in several(x, m)), X, M, backend="numba")


@pytest.mark.compiled
@each
def test_each_compiled(program: Callable[[Any, Any], Any]) -> None:
    np.testing.assert_allclose(differentiable(program)(X, M), program(X, M), rtol=1e-14)
    check_grads(program, X, M)
