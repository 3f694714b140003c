"""Idioms of programs that nobody here wrote: value as plain Python has it, gradient against differences."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any

import bottleneck as bn
import numpy as np
import pytest
from numba.extending import intrinsic
from scipy import interpolate, linalg, optimize, stats

import tapegen as tg

V = np.array([0.7, 1.3, 2.1])
M = np.array([[1.0, 0.2], [0.3, 2.0]])


def check(function: Callable, *args: Any) -> None:
    """Compare value and gradient, of the first argument, with plain Python and with differences."""
    expected = function(*(np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args))
    value, found = tg.value_and_grad(function, backend="python")(*args)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    first, others = np.asarray(args[0], dtype=np.float64), args[1:]
    wanted, step = np.zeros(first.shape), 1e-5
    for place in np.ndindex(first.shape):
        moved = []
        for sign in (1.0, -1.0):
            point = np.copy(first)
            point[place] += sign * step
            moved.append(float(function(point if first.ndim else float(point), *others)))
        wanted[place] = (moved[0] - moved[1]) / (2.0 * step)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)


# ---- functions of NumPy and scipy ------------------------------------------------------------------------------------


def several_of_two_axes(a: np.ndarray) -> float:
    p, q, r = np.atleast_2d(a, a[0], a[0, 1])
    s, t = np.atleast_1d(a[1, 1], a[1])
    return np.sum(p**2) + np.sum(q**3) + np.sum(r) * np.sum(s * t)


def spaced_of_a_dtype(a: float) -> float:
    rows = np.linspace(a, 2.0, 5, dtype=np.float64), np.linspace(1.0, a, num=5, dtype=float)
    return np.sum(rows[0] ** 2) + np.sum(rows[1] ** 3) + np.sum(np.linspace(a, 3.0, 4, dtype=None))


def density_of_a_singular_matrix_allowed(x: np.ndarray) -> float:
    cov = M @ M.T
    logpdf = stats.multivariate_normal.logpdf
    return logpdf(x[:2], np.zeros(2), cov, True) + logpdf(x[1:], np.ones(2), cov, allow_singular=False)


def test_functions_of_optimization() -> None:
    check(lambda x: optimize.rosen(x) + optimize.rosen([x[0], x[1] * x[2]]), V)
    check(lambda x: optimize.rosen_der(x) @ np.array([1.0, 2.0, 3.0]) + np.sum(optimize.rosen_der(x[:2]) ** 2), V)


def discrete(a: np.ndarray, q: np.ndarray, method: str | None = None) -> np.ndarray:
    return linalg.solve_discrete_lyapunov(a, q, method)


def lyapunov(a: np.ndarray) -> float:
    p = discrete(0.3 * a, np.eye(2)) + discrete(0.2 * a, a @ a.T, "bilinear")
    return np.sum(p**2) + np.trace(linalg.solve_continuous_lyapunov(a, a + a.T) @ a)


def lyapunov_of_many(s: float) -> float:
    return np.sum(linalg.solve_discrete_lyapunov(s * np.eye(11, k=1), np.eye(11)))


@pytest.mark.parametrize(
    ("function", "first"),
    [
        (several_of_two_axes, M),
        (spaced_of_a_dtype, 0.5),
        (density_of_a_singular_matrix_allowed, V),
        (lyapunov, M),
        (lyapunov_of_many, 0.4),
    ],
)
def test_forms_of_functions(function: Callable, first: Any) -> None:
    check(function, first)


def test_piecewise_of_a_number() -> None:
    def one(x: float, k: float) -> float:
        found = np.piecewise(x, [x < 0.0, x >= 1.0], [lambda t, k: k * t, lambda t, k: t**k, 0.25], k)
        return found * x + np.piecewise(x, x < 1.0, [lambda t: np.sin(t), 3.0])

    for x in (-0.5, 0.4, 1.5):
        check(one, x, 3.0)


X = np.linspace(0.0, 3.0, 10)
CURVE = interpolate.splrep(X, np.sin(X))
PLANE_CURVE = interpolate.splprep([np.sin(X), np.cos(X)], s=0)[0]
ACROSS = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0, 2.0])
SURFACE = (ACROSS, np.array([0.0, 0.0, 0.0, 2.0, 2.0, 2.0]), np.cos(np.arange(15.0)), 3, 2)


@pytest.mark.parametrize("points", [0.7, np.array([0.3, 2.9, -0.5, 3.4]), np.array([[0.3, 1.1], [0.1, 2.05]])])
@pytest.mark.parametrize(("order", "outside"), [(0, 0), (0, 1), (0, 3), (1, 1), (2, 3)])
def test_splines(points: Any, order: int, outside: int) -> None:
    check(lambda x: np.sum(interpolate.splev(x, CURVE, der=order, ext=outside) ** 2), points)


def test_splines_by_coefficients() -> None:
    t, c, k = CURVE
    check(lambda c: np.sum(interpolate.splev(np.array([0.1, 2.3]), (t, c, k)) ** 2), c)
    check(lambda u: interpolate.splev(u, PLANE_CURVE)[0] ** 2 + 3.0 * interpolate.splev(u, PLANE_CURVE, 1)[1], 0.4)
    with pytest.raises(ValueError, match="not in the domain"):
        tg.grad(lambda x: interpolate.splev(x, CURVE, ext=2), backend="python")(5.0)


@pytest.mark.parametrize(
    ("x", "y"), [(0.7, 1.2), (np.array([0.1, 0.9, 3.5]), 1.2), (0.3, V), (np.array([0.1, 0.9]), np.array([-0.1, 0.9]))]
)
def test_surfaces(x: Any, y: Any) -> None:
    check(lambda x: np.sum(interpolate.bisplev(x, y, SURFACE) ** 2), x)
    check(lambda y: np.sum(interpolate.bisplev(x, y, SURFACE, 1, dy=1) ** 2), y)


def test_surfaces_at_unsorted_points() -> None:
    with pytest.raises(ValueError, match="Invalid input data"):
        tg.grad(lambda x: np.sum(interpolate.bisplev(x, 0.5, SURFACE)), backend="python")(np.array([0.9, 0.1]))


# ---- lists, masks and enumerations -----------------------------------------------------------------------------------


def table_in_place(x: np.ndarray) -> float:
    n = 3
    table = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            table[i][j] = x[i] * x[j] ** 2
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += table[i][j] ** 2
    return total + table[0][2]


def columns_of_rows(a: np.ndarray) -> float:
    columns = np.concatenate([row[..., np.newaxis] for row in a], axis=-1)
    beside = np.hstack([np.outer(row, row) for row in a])
    return np.sum(columns[:, 0] * a[1]) + np.sum(beside[0] * np.arange(4.0)) * columns[0, 1]


def masks_of_one_element(x: np.ndarray, scale: float) -> float:
    w = np.full_like(x, np.nan)
    small = np.log(x) < 0.0
    w[small] = scale * x
    w[~small] = np.log(x) * x
    w[True] = w * x
    return w * 2.0


class Shape(enum.Enum):
    LINE = "line"
    CURVE = 2


class Place(enum.IntEnum):
    FIRST = 0
    LAST = 2


def along(x: np.ndarray, shape: Shape = Shape.LINE) -> float:
    if shape is Shape.LINE:
        return 3.0 * x[0]
    return x[1] ** shape.value


def members(x: np.ndarray) -> float:
    total = along(x) * along(x, Shape(2)) + along(x, shape=Shape["LINE"])
    for place in Place:
        total += (place + 1) * x[place] ** 2
    return total * len(list(Shape))


@functools.cache
def factorial(n: int) -> int:
    return 1 if n <= 1 else n * factorial(n - 1)


@functools.lru_cache(maxsize=64)
def binomial(n: int, k: int) -> float:
    if k == 0:
        return 1.0
    return 0.0 if n == 0 else binomial(n - 1, k) + binomial(n - 1, k - 1)


def cached_of_counters(x: np.ndarray) -> float:
    total = 0.0
    for k in range(4):
        total += x[0] ** k / factorial(k)
    for k in range(len(x)):
        total += x[k] ** 2 * binomial(4, k=k)
    return total


@pytest.mark.parametrize("function", [table_in_place, members, cached_of_counters])
def test_of_vectors(function: Callable) -> None:
    check(function, V)


def test_growing_lists_along_other_axes() -> None:
    check(columns_of_rows, M)


def test_one_bool_as_a_mask() -> None:
    for x in (0.7, 1.3):
        value, gradient = tg.value_and_grad(masks_of_one_element, backend="python")(np.array(x), 3.0)
        assert value == masks_of_one_element(np.array(x), 3.0)
        expected = 12.0 * x if x < 1.0 else 2.0 * x * (2.0 * np.log(x) + 1.0)
        np.testing.assert_allclose(gradient, expected, rtol=1e-14)


def test_no_member_has_the_value() -> None:
    def missing(x: float) -> float:
        return x * Place(1)

    with pytest.raises(ValueError, match="1 is not a valid"):
        tg.grad(missing, backend="python")(1.0)


def slices_of_a_list(v: np.ndarray) -> Any:
    s = [1.0, 2.0, 3.0]
    s[1:] = [v[0], v[1] * 2]
    s[1:] /= v[2]
    s[::2] = v[:2] ** 2
    s[:1] += [v[2]]
    s[:0] = [v[0]]
    return s[0] * s[1] + s[2] * s[3] + s[4] * len(s)


def no_axes_at_all(v: np.ndarray) -> Any:
    w = np.empty(np.broadcast_shapes(np.shape(v[0]), ()) + (2,))
    w[..., 0] = v[0]
    w[..., 1] = v[1] * v[2]
    return np.sum(w**2)


def one_frequency(v: np.ndarray) -> Any:
    f = np.asanyarray(v[0]).reshape(-1, 1)
    return np.sum(np.squeeze(np.cos(f * v)) ** 2)


def real_where_it_can_be(v: np.ndarray) -> Any:
    small = v / 4.0
    angles = np.emath.arcsin(small) - np.emath.arccos(small) * np.emath.arctanh(small)
    roots = np.emath.sqrt(v) + np.emath.log(v) + np.emath.log2(v) + np.emath.log10(v) + np.emath.logn(3, v)
    return np.sum(roots + np.emath.power(v, 1.5) + angles)


def of_bottleneck(v: np.ndarray) -> Any:
    w = np.stack([v, v**2])
    w[0, 1] = np.nan
    sums = bn.nansum(w) + bn.nanmean(w, axis=1)[0] + bn.nanmedian(w) + bn.nanmin(w) + bn.nanmax(w, axis=0)[2]
    return sums + bn.nanstd(w, axis=-1, ddof=1)[1] + bn.nanvar(w)


@pytest.mark.parametrize(
    "function", [slices_of_a_list, no_axes_at_all, one_frequency, real_where_it_can_be, of_bottleneck]
)
def test_what_other_libraries_write(function: Callable[[np.ndarray], Any]) -> None:
    v = np.array([1.3, 0.7, 2.1])
    value, gradient = tg.value_and_grad(function, backend="python")(v)
    assert np.allclose(value, function(v), rtol=1e-14)
    differences = [(function(v + 1e-6 * e) - function(v - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    assert np.allclose(gradient, differences, rtol=1e-7)


def test_real_arguments_with_complex_results() -> None:
    with pytest.raises(tg.TapegenError, match="complex here: pass complex numbers"):
        tg.grad(lambda v: np.sum(np.real(np.emath.sqrt(v))), backend="python")(np.array([-1.0, 2.0]))


def test_an_item_of_a_tuple_is_not_assigned() -> None:
    def extends(v: np.ndarray) -> Any:
        t = ([v[0]], 1.0)
        t[0] += [2.0]  # type: ignore[index]
        return t[0][1]

    with pytest.raises(TypeError, match="'tuple' object does not support item assignment"):
        tg.grad(extends, backend="python")(np.ones(2))


# ---- messages --------------------------------------------------------------------------------------------------------


def test_elements_of_numbers() -> None:
    def stores(x: float) -> float:
        w = np.exp(x)
        small = w < 1.0
        w[~small] = 3.0
        return w

    with pytest.raises(TypeError, match=r"'numpy\.float64' object does not support item assignment"):
        stores(0.5)
    with pytest.raises(TypeError, match=r"'numpy\.float64' object does not support item assignment"):
        tg.grad(stores, backend="python")(0.5)


def test_intrinsics_of_numba() -> None:
    @intrinsic
    def profile(context: Any, x: Any) -> Any:
        raise AssertionError(context, x)

    with pytest.raises(tg.NotDifferentiable, match="'profile' is an intrinsic of numba") as caught:
        tg.grad(lambda x: profile(x) * 2.0, backend="python")(0.5)
    assert "functions that have rules" in str(caught.value)


def test_parts_of_different_shapes() -> None:
    with pytest.raises(tg.NotDifferentiable, match="'CURVE' holds parts of different shapes") as caught:
        tg.grad(lambda x: interpolate.splint(0.0, x, CURVE), backend="python")(0.5)
    assert "interpolate.splint(0.0, x, CURVE)" in str(caught.value) and "t, c, k = tck" in str(caught.value)
