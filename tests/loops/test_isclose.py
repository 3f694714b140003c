"""`np.isclose` and `np.allclose`, which end many loops: compiled, of real and complex numbers, with every keyword."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tests.judged import both

INF, NAN = np.inf, np.nan
REAL = np.array([1.0, INF, NAN, -INF, 1e-9, 0.0, 1.0 + 1e-6, -2.0])
COMPLEX = np.array(
    [1 + 1j, complex(INF, 1), complex(NAN, 0), complex(INF, -INF), 1e-9, 0, 1 + 1e-6 + 1j, complex(1, NAN)]
)


def settled(z: np.ndarray, x: np.ndarray) -> Any:
    for _ in range(40):
        old = z
        z = 0.5 * (z + 1j * z * x)
        if np.allclose(z, old, atol=1e-3):
            break
    return np.sum(np.abs(z) ** 2)


@both
def test_a_loop_ends_where_it_has_settled(backend: str) -> None:
    tg.check_grads(settled, COMPLEX[[0, 4, 6]], np.array([0.1, 0.2, 0.3]), wrt=(0, 1), backend=backend)


def counted(a: np.ndarray, b: np.ndarray, x: float) -> float:
    near = np.isclose(a, b, atol=1e-2) * 1.0 + np.isclose(a, b, 1e-3) * 2.0 + np.isclose(a, b, equal_nan=True) * 4.0
    return x * np.sum(near * 10.0 ** np.arange(8)) + x * float(np.allclose(a, b, rtol=1e-3))


@both
@pytest.mark.parametrize("values", [REAL, COMPLEX, np.arange(-4, 4)], ids=["real", "complex", "integer"])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_each_pair(values: np.ndarray, backend: str) -> None:
    function: Callable = tg.differentiable(counted, wrt=2, backend=backend)
    for value in values:
        for by in (0, 5e-4, 1):
            other = np.full(8, value) + by
            assert function.value_and_grad(values, other, 1.0) == (counted(values, other, 1.0),) * 2
