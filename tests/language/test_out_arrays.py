"""Results in arrays that the program gives (`out=`): `tests/out_arrays.py` says how."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument, TapegenError
from tapegen.rules.registry import rule_of
from tests.judged import both, refused, right
from tests.out_arrays import CALLS, cases
from tests.view_stores import wrong

X = np.array([[0.5, 1.5, 2.0], [0.3, 0.8, 0.4]])


@pytest.mark.filterwarnings("ignore")
def test_sample() -> None:
    assert not wrong(60, cases=cases)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore")
def test_all() -> None:
    assert not wrong(1, cases=cases)


def test_every_function_with_an_array_for_its_result_is_called() -> None:
    called = {call.partition("(")[0] for call in CALLS}
    alike = {
        "amin",
        "isneginf",
        "nanargmin",
        "fftn",
        "hfft",
        "ifft2",
        "ifftn",
        "ihfft",
        "irfftn",
        "rfft",
        "rfft2",
        "concat",
    }
    for space in (np, np.linalg, np.fft):
        for name, func in vars(space).items():
            if inspect.isroutine(func) and not isinstance(func, type) and rule_of(func) is not None:
                try:
                    takes = "out" in inspect.signature(func).parameters
                except ValueError:
                    continue
                path = f"{space.__name__.replace('numpy', 'np')}.{name}"
                assert not takes or path in called or name in alike, path


# ---- results that do not fit -----------------------------------------------------------------------------------------


def sums_into_a_matrix(x: np.ndarray, out: np.ndarray) -> Any:
    np.cumsum(x, axis=-1, out=out)
    return np.sum(out * out)


@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (3, 3), (2, 2), (2, 4), (1, 2, 3)])
def test_sums_of_another_shape(shape: tuple[int, ...]) -> None:
    """NumPy may write past the end of the array."""
    if len(shape) != 2:
        refused(sums_into_a_matrix, X, np.zeros(shape), error=TapegenError, match="has another shape")
    with pytest.raises((TapegenError, ValueError)):
        tg.grad(sums_into_a_matrix, backend="python")(X, np.zeros(shape))


def in_all_rows(x: np.ndarray) -> Any:
    rows, one = np.zeros((2, 3)), np.zeros(3)
    np.exp(x[0], out=rows)
    np.sum(x * rows, axis=0, out=one)
    np.cumsum(x, axis=1, out=rows)
    return np.sum(rows * one * x)


@both
def test_ufuncs_fill_larger_arrays(backend: str) -> None:
    right(in_all_rows, X, backend=backend)


def rotated_in_place(x: np.ndarray) -> Any:
    y = x * x
    np.concatenate([y[1:], y[:1]], out=y)
    return np.sum(y * x)


def range_into_its_operand(x: np.ndarray) -> Any:
    y = x * x
    np.ptp(y, axis=0, out=y[0])
    return np.sum(y * x)


@pytest.mark.parametrize("function", [rotated_in_place, range_into_its_operand])
def test_written_while_still_read(function: Any) -> None:
    refused(function, X, error=TapegenError, match="writes into an array while it still uses")


def transformed_without_axes(x: np.ndarray) -> Any:
    out = np.zeros((), dtype=complex)
    np.fft.fft2(x, axes=None, out=out)
    return np.real(out).item()


def transformed_along_no_axis(x: np.ndarray) -> Any:
    out = np.zeros((2, 3), dtype=complex)
    np.fft.ifftn(x, None, [], out=out)
    return np.sum(np.real(out))


def transformed_to_no_sizes(x: np.ndarray) -> Any:
    out = np.zeros((), dtype=complex)
    np.fft.fftn(x, (), out=out)
    return np.real(out).item()


def transformed_along_all_axes(x: np.ndarray) -> Any:
    out = np.zeros((2, 3), dtype=complex)
    np.fft.fft2(x, axes=None, out=out)
    return np.sum(np.real(out) * x)


@pytest.mark.filterwarnings("ignore:`axes` should not be `None`:DeprecationWarning")
@pytest.mark.parametrize(
    ("function", "x"),
    [
        (transformed_without_axes, np.array(0.7)),
        (transformed_along_no_axis, X),
        (transformed_to_no_sizes, np.array(0.7)),
    ],
)
def test_a_transform_along_no_axis_leaves_the_array_for_its_result(function: Any, x: np.ndarray) -> None:
    assert function(x) == 0.0
    refused(function, x, error=TapegenError, match="leaves its 'out=' as it is")


@both
def test_a_transform_along_all_axes_fills_the_array(backend: str) -> None:
    right(transformed_along_all_axes, X, backend=backend)


def test_products_into_arrays_with_gaps_are_refused() -> None:
    def product(m):
        w = np.zeros((2, 4))
        np.dot(m, m, out=w[:, ::2])
        return np.sum(w)

    m = np.array([[0.5, 1.5], [0.2, -0.4]])
    with pytest.raises(ValueError, match="output array is not acceptable"):
        product(m)
    with pytest.raises(BadArgument, match="contiguous"):
        tg.grad(product, backend="python")(m)


def test_sizes_that_only_the_run_knows_are_compared() -> None:
    def product(m, k):
        w = np.zeros((k, 2))
        np.dot(m, m, out=w)
        return np.sum(w * w)

    derived = tg.differentiable(product, backend="python")
    np.testing.assert_array_equal(derived.grad(np.ones((2, 2)), 2), np.full((2, 2), 16.0))
    m = np.ones((1, 1))  # which a store would broadcast
    for call in (product, derived.grad):
        with pytest.raises(ValueError, match="output array has wrong dimensions"):
            call(m, 2)
