"""Products and linear systems in compiled code: NumPy's results without the functions that numba compiles for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core import event
from numba.core.runtime import _nrt_python, rtsys

from tapegen.backend.numba.compiler import CompilerOptions, compiler_with
from tests.backend.test_allocation import Compiled


def products(a: Any, b: Any, v: Any) -> Any:
    square = np.dot(a, b)
    return (
        *(square, np.dot(a.T, b), np.dot(a, b.T), np.dot(a[::2], b), np.dot(a[:0], b), np.dot(a[:, :0], b[:0])),
        *(np.dot(a, v), np.dot(v, b), np.dot(a[:1], v), np.dot(a[:1], b), np.dot(a, b[:, :1])),
        *(np.dot(v, v), np.dot(v[::2], v[1:])),
    )


def product(a: Any, b: Any) -> Any:
    return np.dot(a, b)


def solutions(a: Any, b: Any, v: Any) -> Any:
    return (
        *(np.linalg.solve(a, b), np.linalg.solve(a.T, b[:, 1:]), np.linalg.solve(a, b.T), np.linalg.solve(a, v)),
        *(np.linalg.solve(a[1:, 1:], v[:2]), np.linalg.solve(a[:0, :0], v[:0]), np.linalg.solve(a, b[:, :0])),
    )


def solution(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def compiled(function: Any) -> Any:
    return njit(error_model="numpy", pipeline_class=compiler_with(CompilerOptions(True, True, True)))(function)


def operands(dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    numbers = rng.normal(size=(3, 7)) + (1j * rng.normal(size=(3, 7)) if np.dtype(dtype).kind == "c" else 0.0)
    numbers = numbers.astype(dtype)
    return numbers[:, :3].copy(), numbers[:, 3:6].copy(), numbers[:, 6].copy()


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", ["d", "f", "D"])
@pytest.mark.parametrize("program", [products, solutions])
def test_results_are_numpys(program: Any, dtype: str) -> None:
    arrays = operands(dtype)
    before = [array.copy() for array in arrays]
    function = compiled(program)
    listener = Compiled()
    with event.install_listener("numba:compile", listener):
        results = function(*arrays)
    assert not [name for name in listener.names if name.startswith(("dot_2_impl", "solve_impl"))]
    for found, expected in zip(results, program(*arrays), strict=True):
        assert np.shape(found) == np.shape(expected)
        assert np.ndim(found) == 0 or found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == "f" else 1e-11)
    assert all(np.array_equal(one, other) for one, other in zip(arrays, before, strict=True))
    del results, found
    _nrt_python.memsys_enable_stats()
    try:
        start = rtsys.get_allocation_stats()
        function(*arrays)
        end = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert end.alloc > start.alloc
    assert end.alloc - start.alloc == end.free - start.free


@pytest.mark.compiled
def test_errors() -> None:
    multiply, solve = compiled(product), compiled(solution)
    for shapes in [((2, 3), (4, 2)), ((3,), (4,)), ((3,), (4, 2)), ((2, 2), (3,))]:
        with pytest.raises(ValueError, match="incompatible array sizes"):
            multiply(*map(np.ones, shapes))
    for a, b, message in [
        (np.ones((2, 2)), np.ones(2), "singular"),
        (np.ones((2, 3)), np.ones(2), "must be square"),
        (np.eye(2), np.ones(3), "dimensionally"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), np.ones(2), "infs or NaNs"),
        (np.eye(2), np.array([np.inf, 0.0]), "infs or NaNs"),
    ]:
        with pytest.raises(np.linalg.LinAlgError, match=message):
            solve(a, b)
