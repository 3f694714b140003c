"""Forms of NumPy's functions that are written out: keywords and subscripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import AliasError, BadArgument, NotDifferentiable
from tests.judged import both, raises_as_python, right

A = np.arange(12.0).reshape(3, 4) ** 1.3 + 0.1 * np.sin(np.arange(12.0)).reshape(3, 4)
V = np.array([0.3, -1.2, 0.7, 2.0])
B = np.random.default_rng(0).normal(size=(3, 3, 3))


def weighted(x):
    """A number in which every element counts otherwise."""
    row = np.ravel(x)
    return np.sum(np.sin(np.arange(row.size) + 1.0) * row**2)


def pad_by_means(a, v, b):
    return weighted(np.pad(a, ((1, 2), (0, 3)), "mean")) + weighted(np.pad(v, 2, mode="mean", stat_length=2))


def pad_by_extremes(a, v, b):
    ends = np.pad(a, 2, "maximum", stat_length=((1, 2), (3, 9)))
    return weighted(ends) + weighted(np.pad(a, (1, 0), "minimum")) + weighted(np.pad(a, 2, "median"))


def pad_by_ramps(a, v, b):
    ends = np.pad(a, ((2, 1), (0, 3)), "linear_ramp", end_values=((1.0, 2.0), (3.0, v[0])))
    return weighted(ends) + weighted(np.pad(v, 3, "linear_ramp", end_values=v[1]))


def pad_by_values(a, v, b):
    ends = np.pad(a, ((1, 0), (2, 1)), constant_values=((v[0], v[1]), (1.5, v[2])))
    return weighted(ends) + weighted(np.pad(v, 2, "constant", constant_values=a[0, 1]))


def pad_by_odd_reflections(a, v, b):
    ends = np.pad(a, ((2, 1), (0, 3)), "reflect", reflect_type="odd")
    rows = np.pad(a[:1], ((3, 1), (1, 1)), mode="reflect", reflect_type="odd")
    turned = np.pad(v, (3, 4), mode="symmetric", reflect_type="odd")
    return weighted(ends) + weighted(rows) + weighted(turned) + weighted(np.pad(v, 2, "reflect", reflect_type="even"))


def diagonals_in_einsum(a, v, b):
    first = np.einsum("ii", b[1]) * np.einsum("iji,j->", b, v[:3])
    return first + weighted(np.einsum("iii->i", b)) + weighted(np.einsum("...ii->...i", b) + np.einsum("ijj->i", b))


def insertions(a, v, b):
    rows = np.insert(a, [1], a[:2] * v, axis=0)
    columns = np.insert(a, np.array([1, 3]), b[:1, :, :2], axis=1)
    return weighted(rows) + np.sum(np.sin(columns) * columns) + weighted(np.insert(v, [-1], a[0]))


def products_with_diagonals(a, v, b):
    return weighted(np.einsum("ijj,jk", b, a)) + weighted(np.einsum("ii,ij->j", b[0], a))


def differences_with_ends(a, v, b):
    rows = np.diff(a, axis=0, append=a[:2] * 2.0)
    return weighted(np.diff(v, prepend=0.5)) + weighted(rows) + weighted(np.diff(a, 2, prepend=v[0], append=a[:, :1]))


def rows_of_parts(a, v, b):
    return weighted(np.r_[v, 1.0, v[0], a[0], 0:3, 0:1:4j, 3]) + weighted(np.r_[a, a * 2.0])


def columns_of_parts(a, v, b):
    return weighted(np.c_[v, v**2, a.T]) + weighted(np.c_[1.0, v[0]]) + weighted(np.c_[0:4, v])


def moments_about_a_mean(a, v, b):
    rows = np.std(a, axis=1, keepdims=True, ddof=1, mean=np.mean(a, axis=1, keepdims=True))
    return np.std(a, mean=np.mean(a)) + weighted(np.var(a, axis=0, mean=v)) + weighted(rows)


def results_in_arrays_by_position(a, v, b):
    columns, squares, ends = np.empty((6, 4)), np.empty((3, 4)), np.empty((2, 4))
    np.sum(a, 0, None, columns[0])
    np.max(a, 0, columns[1])
    np.std(a, 0, None, columns[2])
    np.median(a, 0, columns[3])
    np.dot(v, b[0, :1, :1] * np.eye(4), columns[4])
    a.prod(0, None, columns[5])
    np.clip(a, 1.0, 4.0, squares)
    np.take(a, [2, 0], 0, ends)
    whole, part, trace = np.empty(4), np.empty(4), np.empty(())
    np.modf(3.1 * v, whole, part)
    np.trace(b[0], 0, 0, 1, None, trace)
    return weighted(columns) + weighted(squares) + weighted(ends) + weighted(part * v + whole) + trace


def reductions_by_position(a, v, b):
    total = np.empty(4)
    np.max(a, 0, total, False, 7.0 * v[3], np.array([[True], [False], [True]]))
    return weighted(total) + weighted(np.mean(a, 1, where=v > 0.0, out=np.empty(3)))


def some_of_what_is_there(a, v, b):
    holes, kept = np.where(a > 9.0, np.nan, a), np.array([[True, False, True, True]])
    sums = np.nansum(holes, axis=1, where=kept, initial=v[0]) * np.nanmax(holes, axis=1, initial=-1.0, where=kept)
    spread = np.nanstd(holes, axis=0, where=a > 0.5, correction=0) + np.var(a, axis=0, where=a > 0.5, correction=1)
    return weighted(sums) + weighted(spread) + np.nanprod(v, initial=2.0) * np.nanmean(v, where=v > 0.0)


def tables_with_ends(a, v, b):
    at, places = np.linspace(-1.0, 5.0, 7) + 0.05, np.array([0.2, 1.0, 2.5, 3.1])
    ends = np.interp(at, places, v, left=v[0] * v[1], right=2.5)
    return weighted(ends) + weighted(np.interp(at + a[0, 0], places + 3.0, v**2, period=4.3))


def averages_with_their_weights(a, v, b):
    mean, total = np.average(a, axis=1, weights=v**2, returned=True)
    plain, count = np.average(b, axis=(0, 2), returned=True)
    return weighted(mean * total) + weighted(plain * count)


def missing_values_replaced(a, v, b):
    holes = np.where(a > 9.0, np.nan, np.where(a < 1.0, -np.inf, a))
    np.nan_to_num(holes, copy=False, nan=v[0], neginf=v[1])
    return weighted(holes) + weighted(np.nan_to_num(v, nan=1.0))


FORMS = [
    *(results_in_arrays_by_position, reductions_by_position, some_of_what_is_there, tables_with_ends),
    *(averages_with_their_weights, missing_values_replaced),
    *(pad_by_means, pad_by_extremes, pad_by_ramps, pad_by_values, pad_by_odd_reflections),
    *(diagonals_in_einsum, products_with_diagonals, insertions),
    *(differences_with_ends, rows_of_parts, columns_of_parts, moments_about_a_mean),
]


@pytest.mark.parametrize("function", FORMS, ids=lambda function: function.__name__)
def test_value_and_derivatives(function: Callable) -> None:
    value = tg.differentiable(function, backend="python", wrt=(0, 1, 2)).value_and_grad(A, V, B)[0]
    expected = function(A, V, B)
    if function is diagonals_in_einsum:  # NumPy adds in the order of memory, and copies of parts have another one
        expected = pytest.approx(expected, rel=2.0 * np.finfo(float).eps)
    assert value == expected
    tg.check_grads(function, A, V, B, modes=("forward", "reverse"), backend="python")


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_many_odd_reflections(mode: str) -> None:
    def around(a):
        return np.pad(a, ((7, 5), (9, 12)), mode, reflect_type="odd")

    value, pullback = tg.vjp(around, A, backend="python")
    np.testing.assert_allclose(value, around(A), rtol=1e-13)
    tg.check_grads(around, A, modes=("forward", "reverse"), backend="python")
    assert pullback(np.ones_like(value)).shape == A.shape


@pytest.mark.compiled
@pytest.mark.parametrize("function", FORMS, ids=lambda function: function.__name__)
def test_compiled(function: Callable) -> None:
    compiled = tg.differentiable(function, backend="numba", wrt=(0, 1, 2))
    for got, expected in zip(compiled.grad(A, V, B), tg.grad(function, wrt=(0, 1, 2), backend="python")(A, V, B)):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "form",
    [
        lambda x: np.pad(x, 1, "mean"),
        lambda x: np.pad(x, 1, "linear_ramp", end_values=2.0),
        lambda x: np.pad(x, 1, "reflect", reflect_type="odd"),
        lambda x: np.pad(x, 1, constant_values=x[0, 0]),
        lambda x: np.einsum("ii->i", x[:, :3]),
        lambda x: np.diff(x, prepend=x[:, :1]),
        lambda x: np.r_[x, x],
        lambda x: np.r_[x[0], 1.5],
        lambda x: np.c_[x[0], x[1]],
        lambda x: np.std(x, axis=0, mean=x[:1]),
        lambda x: np.nan_to_num(x, nan=2.0),
        lambda x: np.nansum(x, axis=0, where=x > 1.0, initial=2.0),
    ],
)
def test_single_precision_stays(form: Callable) -> None:
    x = A.astype(np.float32)
    got = tg.differentiable(form, backend="python").vjp(x)
    assert got[0].dtype == form(x).dtype == np.float32
    assert got[1](np.ones_like(got[0])).dtype == np.float32


@pytest.mark.parametrize(
    "form",
    [
        lambda x: np.stack([x[0], x[1]], dtype=np.float64),
        lambda x: np.concatenate((x, x), axis=None, dtype=np.float64, casting="safe"),
        lambda x: np.trace(x, dtype=np.float64),
        lambda x: np.einsum("ij,kj", x, x, dtype=np.float64),
        lambda x: np.mean(x, 0, np.float64, where=x > 0.0),
        lambda x: np.nansum(x, 0, np.float64, where=x > 0.0),
    ],
)
def test_dtype_of_the_result(form: Callable) -> None:
    x = A.astype(np.float32)
    value, pullback = tg.vjp(form, x, backend="python")
    np.testing.assert_array_equal(value, form(x))
    assert value.dtype == np.float64
    wide = tg.vjp(form, x.astype(np.float64), backend="python")[1](np.ones_like(value))
    assert pullback(np.ones_like(value)).dtype == np.float32
    np.testing.assert_allclose(pullback(np.ones_like(value)), wide, rtol=1e-6)


def test_axes_of_different_sizes_have_no_diagonal() -> None:
    with pytest.raises(ValueError, match="'i' don't match"):
        tg.grad(lambda a: np.einsum("ii", a), backend="python")(A)


def test_a_diagonal_alone_is_a_view() -> None:
    def cleared(a):
        b = a * 2.0
        np.einsum("ii->i", b)[:] = 0.0
        return np.sum(b**2)

    square = B[0]
    with pytest.raises(BadArgument, match="read-only"):  # NumPy would write into b
        tg.grad(cleared, backend="python")(square)


def test_what_stays_refused() -> None:
    for function, reason in [
        (lambda v: np.pad(v, 1, "empty"), "mode='empty'"),
        (lambda v: np.r_["0,2", v, v], "np.r_ gets"),
        (lambda v: np.insert(v, np.array([True, True, False, True]), v[:3]), "no rule for masks"),
        (lambda v: np.logspace(v, 2.0, 3, dtype=np.float32), "rule of 'logspace' has fewer parameters.*'dtype'"),
        (lambda v: np.linalg.pinv(np.outer(v, v), rcond=0.1), "pinv has a rule without a tolerance"),
        (lambda v: np.sqrt(v, where=v > 0.0), "is undefined where 'where=' is false"),
    ]:
        with pytest.raises(NotDifferentiable, match=reason) as info:
            tg.differentiable(function, backend="python").vjp(V)
        assert info.value.span is not None
        assert info.value.span.file == __file__


def needed_copies_alone(v):
    c = v * 1.0
    np.array(c, copy=None)[1] = v[0] * 3.0
    np.astype(c, np.float64, copy=False)[2] = v[0] ** 2
    np.asarray(c, dtype=np.float64)[3] = v[0] ** 3
    return weighted(c)


def copies_in_any_case(v):
    c = v * 1.0
    np.asarray(c, copy=True)[1] = v[0] * 3.0
    np.astype(c, np.float64)[2] = v[0] ** 2
    np.asarray(np.reshape(c, (2, 2)), order="F", copy=True)[0] = 0.0
    return weighted(c)


@pytest.mark.parametrize("function", [needed_copies_alone, copies_in_any_case], ids=lambda function: function.__name__)
def test_copies(function: Callable) -> None:
    assert tg.value_and_grad(function, backend="python")(V)[0] == function(V)
    tg.check_grads(function, V, modes=("forward", "reverse"), backend="python")


def test_a_layout_that_is_asked_for_may_be_a_copy() -> None:
    def either(a):
        c = a * 1.0
        np.asarray(c, order="F")[0, 1] = 5.0
        return np.sum(c**2)

    with pytest.raises(AliasError, match="may share memory"):
        tg.grad(either, backend="python")(A)


def test_a_copy_in_another_layout() -> None:
    assert np.array_equal(tg.grad(lambda a: np.sum(a.copy("F") ** 2), backend="python")(A), 2 * A)


def about_a_mean(a):
    some = np.where(a == a[1, 2], np.nan, a)
    middle = np.mean(a, axis=1, keepdims=True)
    return np.nanvar(some, axis=1, mean=middle), np.nanstd(some, mean=middle[:1], correction=1, keepdims=True)


def by_weight(a):
    q = np.array([0.0, 0.3, 1.0])
    some = np.where(a == a[1, 2], np.nan, a)
    rows = np.quantile(a, q, axis=1, weights=np.array([0.0, 1.0, 2.0, 1.0]), method="inverted_cdf")
    columns = np.percentile(a, 40.0, axis=0, weights=np.array([2, 1, 2]), method="inverted_cdf", keepdims=True)
    return rows, columns, np.nanquantile(some, 0.6, weights=np.abs(a), method="inverted_cdf")


def along_axes(a):
    row = np.matmul(a, a[:, 0], axes=[(1, 0), 0, (0,)])
    both = np.matmul(np.stack([a, 2.0 * a]), a, axes=[(1, 2), (1, 0), (0, 1)])
    return row, both, np.matmul(a[0], a[1], axes=[(0,), (0,), ()])


def products_in_any_order(a):
    chain = np.einsum("ij,kj,kl", a, a, a, optimize="greedy")
    return np.einsum("...j,j->...", a, a[0], optimize=True), np.einsum("ii,ij->j", a[:, :3], a, optimize=False), chain


def from_the_first(a):
    none = a[:, :0]
    least = np.min(none, axis=1, initial=2.0) * a[:, 0]
    return np.max(a, axis=0, initial=5.0), least, none.max(initial=a[0, 1]), np.max(a, initial=9.0, keepdims=True)


def averages_over_axes(a):
    b = np.stack([a, np.sin(a)])
    rows = np.average(b, axis=(1, 2), weights=a + 1.0, keepdims=True)
    return rows, np.average(b, axis=(-1, 0), weights=a[:2].T + 1.0), np.average(a, axis=0, weights=a[:, 1] + 1.0)


def points_between(a):
    points, step = np.linspace(a[0], 3.0 * a[1], 5, retstep=True, axis=-1)
    first, width = np.linspace(0.5, a[0, 1], 4, endpoint=False, retstep=True)
    return points, step, first * width, np.linspace(a[0], a[1], 3, axis=1), np.linspace(a[0, 1], 2.0, 3, axis=0)


def open_grids(a):
    x, y, z = np.meshgrid(a[0], a[:, 1], a[1, :2], sparse=True)
    p, q = np.meshgrid(a[0], a[:, 1] ** 2, indexing="ij", sparse=True)
    return x * y * z, p * q, np.meshgrid(a[0], a[1], sparse=False, copy=True)[1] ** 2


def sorted_in_ways(a):
    row = np.sort(a, axis=None, kind="stable") * np.sort(a, axis=0, stable=True)[0, 1]
    b = a * a[0, 1]
    b.sort(axis=1, kind="heapsort")
    return row * row, b, np.partition(a[0], 2, kind="introselect")[2]


def test_open_grids_of_unknown_order_raise_as_numpy_does() -> None:
    with pytest.raises(ValueError, match="Valid values for `indexing`"):
        tg.differentiable(lambda a: np.meshgrid(a, a, sparse=True, indexing="zz")[0][0, 0], backend="python").grad(A[0])


@pytest.mark.parametrize(
    "function",
    [
        *(about_a_mean, by_weight, along_axes, products_in_any_order, from_the_first, averages_over_axes),
        *(points_between, open_grids, sorted_in_ways),
    ],
)
def test_keywords(function: Callable) -> None:
    value, _ = tg.vjp(function, A, backend="python")
    for got, expected in zip(value, function(A), strict=True):
        assert np.shape(got) == np.shape(expected)
        np.testing.assert_allclose(got, expected, rtol=1e-14)
    tg.check_grads(function, A, modes=("forward", "reverse"), backend="python")


def reshaped_in_many_forms(a):
    copied = np.reshape(a, (4, 3), copy=True)
    copied[0] *= 2.0
    columns = np.reshape(a, -1, "F") * np.reshape(a, (12,), order="C")
    shared = np.reshape(a, shape=(2, 6), copy=None)
    shared[1] *= 1.5
    return np.sum(a**3) + np.sum(copied**2) + columns @ np.arange(12.0) + shared[1, 2]


def at_a_matrix_of_places(a):
    places = np.array([[0.14, 0.42], [0.86, 0.61]])
    rows = np.quantile(a, places, axis=1, keepdims=True)
    return np.sum(rows**2) + np.nanquantile(a, q=places * a[0, 0])[1, 0] + np.sum(np.quantile(a, places)[0])


@pytest.mark.parametrize("function", [reshaped_in_many_forms, at_a_matrix_of_places])
def test_forms_of_reshape_and_quantile(function: Callable) -> None:
    x = 0.5 + 0.4 * np.sin(np.arange(12.0) ** 2).reshape(3, 4)
    copy = x.copy()
    expected = function(copy)
    given = x.copy()
    value, _ = tg.value_and_grad(function, backend="python")(given)
    assert value == pytest.approx(expected, rel=1e-14)
    np.testing.assert_array_equal(given, copy)
    tg.check_grads(function, x, modes=("forward", "reverse"), backend="python")


@pytest.mark.parametrize(("shape", "axis"), [((4, 3), 0), ((4, 3), 1), ((4, 3), -1), ((4, 3), -2), ((5,), -1)])
def test_an_axis_that_branches_normalise_is_known_from_the_argument(shape: tuple[int, ...], axis: int) -> None:
    def rough(v: Any, axis: int = 0) -> Any:
        if axis < 0:
            axis = v.ndim + axis
        if axis > 0:
            v = np.moveaxis(v, axis, 0)
        return np.sum((v[1:] - v[:-1]) ** 2)

    x = np.cumsum(np.arange(np.prod(shape), dtype=float)).reshape(shape)
    value, gradient = tg.value_and_grad(rough, backend="python")(x, axis)
    steps = np.diff(x, axis=axis)
    ends = np.zeros_like(x.take([0], axis=axis))
    expected = 2.0 * (np.concatenate([ends, steps], axis=axis) - np.concatenate([steps, ends], axis=axis))
    assert value == rough(x, axis)
    np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.hypot.reduce(x),
        lambda x: np.logaddexp.reduce(x, None),
        lambda x: np.std(x, where=x > 0.5),
        lambda x: np.nan_to_num(x[0], nan=1.0),
        lambda x: np.nan_to_num(np.array(x[1]), posinf=2.0),
    ],
)
def test_numbers_are_no_arrays_without_axes(function: Callable[..., Any]) -> None:
    x = np.array([0.7, 1.6, 2.3])
    value, _ = tg.differentiable(function, backend="python").value_and_grad(x)
    assert type(value) is type(function(x)) is np.float64
    assert value == pytest.approx(function(x), rel=1e-14)


def test_numbers_of_numpy_have_the_methods_and_the_errors_of_numpy() -> None:
    def column(x: float) -> Any:
        y = np.radians(x).reshape(-1, 1)
        return np.sum(y * y) * 3.0

    def bounded(v: Any) -> Any:
        n = np.sum(v**2)
        try:
            least = np.finfo(n.type).eps
        except AttributeError:
            least = 1e-3
        return n if n > least else n * 2.0

    value, slope = tg.value_and_grad(column, backend="python")(2.0)
    assert value == column(2.0)
    assert slope == pytest.approx(value, rel=1e-14)
    for v in (np.array([1.0, 2.0]), np.array([0.01, 0.02])):
        factor = 2.0 if v[0] > 0.5 else 4.0
        np.testing.assert_allclose(tg.grad(bounded, backend="python")(v), factor * v, rtol=1e-15)


def sizes_of_sequences(x):
    rows = np.size([[1, 2], [3, 4], [5, 6]], 0) + 10 * np.size([x, x], axis=-1) + 100 * np.size([x, x])
    return np.sum(x) * (rows + 1000 * np.size(x[None], (0, 1)) + np.ndim([]) + len(np.shape([[], []])))


@both
def test_sizes_of_sequences(backend: str) -> None:
    right(sizes_of_sequences, np.array([0.3, 0.5, 0.7]), backend=backend)


@pytest.mark.parametrize("question", [np.ndim, np.shape, np.size])
@both
def test_shapes_of_sequences_of_unlike_parts(question: Any, backend: str) -> None:
    def ranks(x):
        question((x[0], x))
        return np.sum(x)

    def lengths(x):
        question([x, x[1:]])
        return np.sum(x)

    for function in (ranks, lengths):
        raises_as_python(function, np.array([0.3, 0.5, 0.7]), backend=backend)


def reductions_of_a_number(x):
    return np.max(x) * np.amin(x) + np.median(x) + np.prod(x) * np.std(x) + np.sum(x)


def ranges_of_a_number(x):
    return np.ptp(x) + np.nanmedian(x) * x


@both
def test_reductions_of_a_number(backend: str) -> None:
    right(reductions_of_a_number, 0.7, backend=backend)


def test_ranges_of_a_number() -> None:
    right(ranges_of_a_number, 0.7, backend="python")


def clipped(x):
    y = np.clip(a=x, min=0.35) + x.clip(0.4) + x.clip(max=0.6) * x.clip(0.4, 0.6) + np.clip(x, min=0.4, max=0.6)
    x.clip(0.4, 0.6, y[:])
    return np.sum(y * np.clip(x, None, 0.6) + np.clip(x, min=0.5) * np.clip(x))


@both
def test_bounds_of_clip(backend: str) -> None:
    x = np.array([0.3, 0.55, 0.7])
    right(clipped, x, backend=backend)
    for faulty in (
        lambda x: np.sum(np.clip(x, 0.4)),
        lambda x: np.sum(np.clip(x, a_max=0.4)),
        lambda x: np.sum(np.clip(x, 0.4, max=0.6)),
        lambda x: np.sum(np.clip(x, 0.4, 0.6, max=0.6)),
        lambda x: np.sum(np.clip(x, 0.4, 0.6, a_min=0.1)),
    ):
        raises_as_python(faulty, x, backend=backend)
    for twice in (lambda x: np.sum(x.clip(0.4, min=0.5)), lambda x: np.sum(x.clip(0.4, 0.6, None, 0.5))):
        with pytest.raises(NotDifferentiable, match=r"'clip' of .* is not supported with these arguments"):
            tg.differentiable(twice, backend=backend).grad(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(x, 0, None, None, False, 0.0, True, 5),
        lambda x: np.sum(np.cumsum(x, 0, None, None, 1)),
        lambda x: np.sum(np.cumsum(x, 0, None, x * 1.0, out=x * 2.0)),
        lambda x: np.sum(np.exp(x, x * 1.0, out=x * 2.0)),
        lambda x: np.clip(x, 0.4, 0.6, None, 0.5).sum(),
    ],
    ids=["sum", "cumsum", "output twice", "output of a ufunc twice", "clip"],
)
def test_arguments_that_are_too_many_or_given_twice(function: Any) -> None:
    raises_as_python(function, np.array([0.3, 0.55, 0.7]), backend="python")


def test_edges_are_in_a_list() -> None:
    def edges(x: np.ndarray) -> Any:
        return np.histogramdd(x, 3)

    points = np.array([[-0.9, 0.3], [-0.7, 0.2], [1.2, 0.1], [-0.4, 0.5]])
    value, _ = tg.differentiable(edges, backend="python").vjp(points)
    expected = edges(points)
    assert type(value[1]) is type(expected[1]) is list
    np.testing.assert_allclose(value[1], expected[1])


def test_matrices_of_percentiles() -> None:
    def rows(a: np.ndarray, q: np.ndarray) -> float:
        return np.sum(np.nanpercentile(a, q, axis=1) * np.percentile(a, q) * np.sum(a))

    q = np.array([[23.0, 71.0], [33.0, 90.0]])
    tg.check_grads(
        tg.differentiable(rows, wrt=(0, 1), backend="python"), np.array([[0.3, 1.2, -0.4], [2.0, 0.1, 0.7]]), q
    )


def test_a_polynomial_of_no_zeros_is_refused() -> None:
    """Its coefficient is a number, where that of others is an array."""
    zeros = tg.differentiable(np.poly, backend="python")
    for mode in ("forward", "reverse"):
        assert tg.jacobian(zeros, mode=mode)(np.array([0.3, 0.4])).shape == (3, 2)
        with pytest.raises(BadArgument, match="no zeros"):
            tg.jacobian(zeros, mode=mode)(np.zeros(0))


def test_jacobians_of_results_without_axes() -> None:
    """The variance of one variable is an array without axes, made of a matrix of one entry."""

    def variance(x: np.ndarray) -> Any:
        return np.cov(x, bias=False)

    x = np.array([0.4, 1.0, 1.9])
    for mode in ("forward", "reverse"):
        found = tg.jacobian(tg.differentiable(variance, backend="python"), mode=mode)(x)
        np.testing.assert_allclose(found, x - x.mean(), rtol=1e-12)
