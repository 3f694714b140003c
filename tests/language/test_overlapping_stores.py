"""Stores, views and aliases that overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.errors import AliasError
from tests.judged import both, raises_as_python, right

X = np.array([0.5, -1.5, 2.0, 0.7])
SQUARE = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 0.3], [2.0, 0.1, 0.4]])


# ---- stores that overlap -------------------------------------------------------------------------------------------


def overwritten(a: np.ndarray) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * a[i]
        a[i] = a[i] * a[(i + 1) % a.size]
        a[i] = np.sin(a[i])
    return total + a.sum()


def recurrence(a: np.ndarray) -> float:
    for i in range(1, a.shape[0]):
        a[i] += a[i - 1] * a[i - 1]
    return a[-1] * a[1]


@both
def test_d47_old_value_of_a_store(backend: str) -> None:
    right(overwritten, X, backend=backend)


@both
def test_d48_recurrence(backend: str) -> None:
    right(recurrence, X, backend=backend)


def overlapping(a: np.ndarray, b: np.ndarray) -> float:
    a[1:] += a[:-1]
    a += a[::-1]
    a[:-1] *= a[1:]
    a[::2] -= a[1::2]
    b += b.T
    b[1:, :] += b[:-1, ::-1] * b[1:, :]
    b[:, 0] = b[0]
    return (a * a).sum() + (b * np.arange(9.0).reshape(3, 3)).sum()


@both
def test_d49_right_side_overlaps_the_target(backend: str) -> None:
    right(overlapping, X, SQUARE, backend=backend, wrt=(0, 1))


# ---- arrays that are shared ----------------------------------------------------------------------------------------


def product(x: np.ndarray, y: np.ndarray) -> float:
    return (x * y * y).sum()


def writes_first(x: np.ndarray, y: np.ndarray) -> float:
    x[1:] = x[1:] * 2.0
    return (x * y).sum()


@both
def test_d50_same_array_twice(backend: str) -> None:
    derived = differentiable(product, wrt=(0, 1), backend=backend)
    value, (first, second) = derived.value_and_grad(X, X)
    assert value == pytest.approx((X**3).sum(), rel=1e-14)
    np.testing.assert_allclose(first, X * X, rtol=1e-14)
    np.testing.assert_allclose(second, 2.0 * X * X, rtol=1e-14)

    x = X.copy()
    with pytest.raises(AliasError, match=r"'x' is written and shares memory with 'y'.\n") as caught:
        differentiable(writes_first, backend=backend).grad(x, x)
    assert caught.value.advice == "Pass a copy of one of them (y.copy())."
    assert caught.value.span is not None and caught.value.span.file == __file__
    assert caught.value.span.line == writes_first.__code__.co_firstlineno
    np.testing.assert_array_equal(x, X)


@both
def test_d51_overlapping_views_as_arguments(backend: str) -> None:
    z = np.linspace(0.5, 2.0, 5)
    before = z.copy()
    with pytest.raises(AliasError, match="'x' is written and shares memory with 'y'"):
        differentiable(writes_first, backend=backend).grad(z[1:], z[:-1])
    np.testing.assert_array_equal(z, before)
    # only read: no harm
    right(product, z[1:], z[:-1], backend=backend)
    # interleaved views of one buffer do not share an element
    both_halves = np.linspace(0.5, 2.0, 8)
    derived = differentiable(writes_first, backend=backend)
    gradient = derived.grad(both_halves[::2], both_halves[1::2])
    np.testing.assert_allclose(gradient, np.linspace(0.5, 2.0, 8)[1::2] * [1.0, 2.0, 2.0, 2.0], rtol=1e-14)


def mutates(x: np.ndarray, k: float) -> float:
    x *= k
    x[0] = x[1] * x[2]
    return (x * x).sum()


@both
def test_d52_argument_written_in_place(backend: str) -> None:
    derived = right(mutates, X, 1.5, backend=backend, wrt=(0, 1))
    inspection = derived.inspect(X.copy(), 1.5)
    assert "mutated:" in inspection.joint
    assert "x  (cotangents belong to the values on entry)" in inspection.joint


def halves_and_raises(x: np.ndarray) -> float:
    for _ in range(2):
        x /= 2.0
    raise ValueError("never returns")


@both
def test_d52_argument_written_before_an_exception(backend: str) -> None:
    raises_as_python(halves_and_raises, X, backend=backend)


@both
def test_d53_argument_is_not_rolled_back(backend: str) -> None:
    left = X.copy()
    mutates(left, 1.5)
    derived = differentiable(mutates, backend=backend)
    given = X.copy()
    _, pullback = derived.vjp(given, 1.5)
    np.testing.assert_allclose(given, left, rtol=1e-15)
    first = pullback(1.0)
    np.testing.assert_allclose(given, left, rtol=1e-15)
    np.testing.assert_array_equal(first, pullback(1.0))
    np.testing.assert_allclose(first, derived.grad(X.copy(), 1.5), rtol=1e-14)


def part(x: np.ndarray, how: str) -> Any:
    y = x * x
    z = y * x
    if how == "slice":
        return x[1:], z
    if how == "transposed":
        return x.T, z
    if how == "reshaped":
        return x.reshape(-1), z
    return y[1:], z


@both
@pytest.mark.parametrize("how", ["slice", "transposed", "reshaped", "local"])
def test_d54_result_is_a_view(how: str, backend: str) -> None:
    given = SQUARE.copy()
    value, pullback = differentiable(part, backend=backend).vjp(given, how)
    expected = part(SQUARE, how)
    for one, other in zip(value, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    value[0][...] = 99.0  # the caller does with the result what he likes
    given[...] = 77.0
    ones = [np.ones_like(item) for item in expected]
    cotangents = pullback(tuple(ones))
    seed = np.zeros((3, 3))
    if how == "slice":
        seed[1:] = 1.0
    elif how == "local":
        seed[1:] = 2.0 * SQUARE[1:]
    else:
        seed[...] = 1.0
    np.testing.assert_allclose(cotangents, seed + 3.0 * SQUARE**2, rtol=1e-13)


@both
def test_d55_captured_array_changes_between_the_sweeps(backend: str) -> None:
    weights = np.array([1.0, 2.0, 3.0, 4.0])

    def weighted(x: np.ndarray) -> float:
        return (x * x * weights).sum()

    derived = differentiable(weighted, backend=backend)
    value, pullback = derived.vjp(X)
    weights[...] = 100.0
    gradient = pullback(1.0)
    assert value == pytest.approx((X * X * [1.0, 2.0, 3.0, 4.0]).sum(), rel=1e-14)
    np.testing.assert_allclose(gradient, 2.0 * X * [1.0, 2.0, 3.0, 4.0], rtol=1e-14)


# ---- index arrays --------------------------------------------------------------------------------------------------


def repeated_store(a: np.ndarray, v: np.ndarray, k: np.ndarray) -> float:
    a[k] += v
    np.add.at(a, k, v * v)
    a[k] = a[k] * 0.5
    return (a * a).sum()


def repeated_read(a: np.ndarray, k: np.ndarray, mask: np.ndarray) -> float:
    rows = a[k]
    chosen = a[mask]
    return (rows * rows * np.arange(1.0, 6.0)).sum() + (chosen**3).sum()


@both
def test_d57_repeated_indices_in_a_store(backend: str) -> None:
    k = np.array([2, 0, 2, 2, -2])
    right(repeated_store, X, np.linspace(0.1, 0.9, 5), k, backend=backend, wrt=(0, 1))


@both
def test_d58_repeated_indices_in_a_read(backend: str) -> None:
    right(repeated_read, X, np.array([1, 1, 3, -1, 1]), X > 0.0, backend=backend)


# ---- buffers -------------------------------------------------------------------------------------------------------


@both
def test_d59_broadcast_view_as_target(backend: str) -> None:
    fixed = np.broadcast_to(np.float64(2.0), (4,))
    raises_as_python(mutates, fixed, 1.5, backend=backend)
    # NumPy lets such a view be written when it is made by hand
    strided = np.lib.stride_tricks.as_strided(np.array([2.0]), (4,), (0,))
    with pytest.raises((AliasError, ValueError), match="'x'"):
        differentiable(mutates, backend=backend).grad(strided, 1.5)
    # read only, it is an array as any other
    value, gradient = differentiable(product, backend=backend).value_and_grad(fixed, X)
    assert value == pytest.approx(2.0 * (X * X).sum(), rel=1e-14)
    np.testing.assert_allclose(gradient, X * X, rtol=1e-14)


def affine(x: np.ndarray, k: float) -> Any:
    return x * k, x[::-1] * 2.0


def stores_a_row(a: np.ndarray) -> float:
    b = np.zeros(a.size)
    b[:] = a[None] * 2.0
    a[:] = a[None]
    for k in range(2):
        b[k:] = (a[k:] * b[k:])[None, None]
    return b @ a


@both
def test_d49_values_with_more_axes_than_their_place(backend: str) -> None:
    right(stores_a_row, X, backend=backend)
    raises_as_python(stores_columns, np.ones((2, 2)), backend=backend, at="b[:] = a")


def stores_columns(a: np.ndarray) -> float:
    b = np.zeros(2)
    b[:] = a
    return b @ b


@both
def test_d61_cotangents_of_the_caller_stay_as_they_are(backend: str) -> None:
    _, pullback = differentiable(affine, backend=backend, wrt=(0, 1)).vjp(X, 3.0)
    seeds = (np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 6.0, 7.0, 8.0]))
    kept = [seed.copy() for seed in seeds]
    for _ in range(2):
        x_bar, k_bar = pullback(seeds)
        np.testing.assert_array_equal(x_bar, 3.0 * kept[0] + 2.0 * kept[1][::-1])
        assert k_bar == (X * kept[0]).sum()
        x_bar[...] = 0.0
        np.testing.assert_array_equal(seeds, kept)


def identity(x: np.ndarray, y: np.ndarray) -> Any:
    return x, y


@both
def test_d62_results_do_not_share_memory(backend: str) -> None:
    derived = differentiable(affine, backend=backend)
    first = derived(X, 2.0)
    kept = [item.copy() for item in first]
    second = derived(X, 5.0)
    second[0][...] = 0.0
    np.testing.assert_array_equal(first, kept)
    assert not np.shares_memory(first[0], second[0])

    # gradients do not either: not with one another, not with the cotangents, not with the arguments
    seed = np.ones(4)
    x, y = X.copy(), X.copy()
    _, pullback = differentiable(identity, backend=backend, wrt=(0, 1)).vjp(x, y)
    found = [*pullback((seed, seed)), *pullback((seed, seed))]
    everything = [seed, x, y, *found]
    for k, one in enumerate(everything):
        for other in everything[:k]:
            assert not np.shares_memory(one, other)
