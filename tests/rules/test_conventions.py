"""Points where mathematics is thin: what docs/conventions.md says."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import tapegen as tg
from tapegen import differentiable
from tapegen.errors import BadArgument, NotFinite
from tests.judged import both, raises_as_python
from tests.oracle import numerical_gradient

INF, NAN = math.inf, math.nan


def relu(x: Any) -> Any:
    return x * (x > 0.0)


def written_out_norm(x: np.ndarray) -> Any:
    return np.sqrt((x * x).sum())


# The function of one array, where, and its gradient there.
POINTS: dict[str, tuple[Callable[..., Any], list[float], list[float]]] = {
    "f81_abs": (lambda x: np.abs(x).sum() + abs(x[0]), [0.0, -0.0, 2.0], [0.0, 0.0, 1.0]),
    "f81_relu": (lambda x: relu(x).sum(), [0.0, -1.0, 1.0], [0.0, 0.0, 1.0]),
    "f81_norm": (lambda x: np.linalg.norm(x), [0.0, 0.0], [0.0, 0.0]),
    "f81_norm_written_out": (written_out_norm, [0.0, 0.0], [NAN, NAN]),
    "f82_sqrt": (lambda x: np.sqrt(x).sum(), [0.0, 4.0], [INF, 0.25]),
    "f83_maximum": (lambda x: np.maximum(x, 0.0).sum(), [0.0, -1.0, 1.0], [0.5, 0.0, 1.0]),
    "f83_maximum_of_two": (lambda x: np.maximum(x[0], x[1]), [2.0, 2.0], [0.5, 0.5]),
    "f83_minimum_of_two": (lambda x: np.minimum(x[0], x[1]), [2.0, 2.0], [0.5, 0.5]),
    "f83_clip": (lambda x: np.clip(x, 0.0, 1.0).sum(), [0.0, 1.0, 0.5, 2.0, -1.0], [1.0, 1.0, 1.0, 0.0, 0.0]),
    "f83_python_max": (lambda x: max(x[0], x[1]), [2.0, 2.0], [1.0, 0.0]),
    "f83_python_min": (lambda x: min(x[0], x[1]), [2.0, 2.0], [1.0, 0.0]),
    "f83_branch": (lambda x: x[0] * 3.0 if x[0] > x[1] else x[1] * 5.0, [2.0, 2.0], [0.0, 5.0]),
    "f84_reduction": (lambda x: x.max(), [2.0, 1.0, 2.0], [0.5, 0.0, 0.5]),
    "f84_reduction_min": (lambda x: np.min(x), [1.0, 1.0, 2.0, 1.0], [1 / 3, 1 / 3, 0.0, 1 / 3]),
    "f85_to_the_0": (lambda x: (x**0 + x**0.0).sum(), [0.0, 3.0], [0.0, 0.0]),
    "f85_0_to_the_y": (lambda x: (0.0**x).sum(), [2.0, 0.5], [0.0, 0.0]),
    "f86_where": (lambda x: np.where(x > 0.0, np.sqrt(x), 0.0).sum(), [0.0, 4.0, -1.0], [0.0, 0.25, 0.0]),
    "f87_where_log": (lambda x: np.where(x > 0.0, np.log(x) / x, x).sum(), [0.0, 1.0], [1.0, 1.0]),
    "f88_log_times_0": (lambda x: (np.log(x) * 0.0).sum(), [0.0, 2.0], [0.0, 0.0]),
    "f92_branch": (lambda x: x[0] * x[0] if x[0] >= 1.0 else x[0] * 7.0, [1.0], [2.0]),
    "f93_arctan2": (lambda x: np.arctan2(x[0], x[1]), [0.0, 0.0], [NAN, NAN]),
    "f93_hypot": (lambda x: np.hypot(x[0], x[1]), [0.0, 0.0], [0.0, 0.0]),
    "f93_xlogy": (lambda x: scipy.special.xlogy(x, x).sum(), [0.0, 1.0], [-INF, 1.0]),
    "f93_sinc": (lambda x: np.sinc(x).sum(), [0.0], [0.0]),
    "f94_logistic": (lambda x: (1.0 / (1.0 + np.exp(x))).sum(), [1000.0, -1000.0], [0.0, 0.0]),
}


NOT_FINITE = np.array([0.5, INF, -INF, NAN])
MASKED: list[Callable[..., Any]] = [
    lambda x: np.where(np.isfinite(x), np.sin(x), 0.0).sum(),
    lambda x: np.where(np.isinf(x) | np.isnan(x), 0.0, np.tan(x)).sum(),
    lambda x: np.where(np.isfinite(x * x), x * x * x, 0.0).sum(),
    lambda x: np.where(np.isfinite(x), np.hypot(x, 1.0) * np.tanh(x) ** 2, 0.0).sum(),
]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@both
def test_what_the_program_tests_is_not_taken_to_be_finite(backend: str) -> None:
    for func in MASKED:
        expected = [numerical_gradient(func, (NOT_FINITE[:1],), paths=[(0,)]).value[(0,)][0], 0.0, 0.0, 0.0]
        found = differentiable(func, backend=backend).grad(NOT_FINITE)
        np.testing.assert_allclose(found, expected, rtol=1e-7)
        np.testing.assert_array_equal(np.isnan(tg.hessian(func, backend=backend)(NOT_FINITE)), False)
        source = tg.constant(NOT_FINITE)
        with tg.GradientTape() as tape:
            tape.watch(source)
            result = func(source)
        np.testing.assert_allclose(tape.gradient(result, source).numpy(), expected, rtol=1e-7)


@both
def test_sums_that_pass_over_nan(backend: str) -> None:
    x = np.array([0.5, NAN, 2.0])
    np.testing.assert_allclose(differentiable(lambda v: np.nansum(v * v), backend=backend).grad(x), [1.0, 0.0, 4.0])


def test_other_arguments_are_taken_to_be_finite() -> None:
    """Guards of every product behind a selection would be needed, and finite programs have none of these zeros."""
    with np.errstate(all="ignore"):
        found = tg.grad(lambda x: np.where(x < 9.0, np.sin(x), 0.0).sum(), backend="python")(NOT_FINITE[:2])
        product = tg.grad(lambda x: np.where(np.isfinite(x), np.cumprod(x), 0.0).sum(), backend="python")(NOT_FINITE)
    np.testing.assert_array_equal(np.isnan(found), [False, True])
    assert np.isnan(product).all()


def test_in_forward_mode_the_tangent_wins() -> None:
    point, along = np.float64(0.0), np.float64(1.0)
    with np.errstate(all="ignore"):
        assert tg.jvp(lambda x: x * np.sqrt(x), (point,), (0.0 * along,), backend="python")[1] == 0.0
        assert tg.jvp(lambda x: np.sqrt(x * x), (point,), (along,), backend="python")[1] == 0.0
        assert np.isnan(tg.jvp(lambda x: x * np.sqrt(x), (point,), (along,), backend="python")[1])
        assert np.isnan(tg.grad(lambda x: x * np.sqrt(x), backend="python")(point))


@pytest.mark.parametrize("name", POINTS)
def test_gradient_at(name: str) -> None:
    func, where, expected = POINTS[name]
    with np.errstate(all="ignore"):
        value = func(np.array(where))
    found, gradient = differentiable(func, backend="python").value_and_grad(np.array(where))
    np.testing.assert_allclose(found, value, rtol=1e-15)
    np.testing.assert_allclose(gradient, expected, rtol=1e-14)


def thin_numbers(x: np.ndarray) -> Any:
    """One term for each number: the conventions in compiled code."""
    total = np.abs(x[0]) + np.sqrt(x[1]) + np.maximum(x[2], 0.0) + np.clip(x[3], 0.0, 1.0) + max(x[4], 2.0)
    total += x[5] ** 0 + 0.0 ** x[6] + np.where(x[7] > 0.0, np.sqrt(x[7]), 0.0) + np.log(x[8]) * 0.0
    total += np.hypot(x[9], 0.0) + np.sinc(x[10]) + 1.0 / (1.0 + np.exp(x[11])) + np.arctan2(x[12], 0.0)
    return total + min(2.0, x[13])


THIN_NUMBERS = [0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1000.0, 0.0, 2.0]
THIN_GRADIENT = [0.0, INF, 0.5, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, NAN, 0.0]


def thin_arrays(x: np.ndarray, y: np.ndarray) -> Any:
    """The same for whole arrays."""
    total = np.linalg.norm(y) + x.max() + np.where(x > 0.0, np.sqrt(x), 0.0).sum() * 0.0
    total += np.maximum(x, x[::-1]).sum() + np.clip(x, 0.0, 1.0).sum() + (1.0 / (1.0 + np.exp(x * 1000.0))).sum()
    return total + (x**0.0).sum()


@both
def test_conventions_hold_in_loops_and_in_compiled_code(backend: str) -> None:
    derived = differentiable(thin_numbers, backend=backend)
    value, gradient = derived.value_and_grad(np.array(THIN_NUMBERS))
    with np.errstate(all="ignore"):
        np.testing.assert_equal(value, thin_numbers(np.array(THIN_NUMBERS)))
    np.testing.assert_allclose(gradient, THIN_GRADIENT, rtol=1e-14)

    x, y = np.array([1.0, -1.0, 1.0]), np.zeros(2)
    value, (x_bar, y_bar) = differentiable(thin_arrays, backend=backend, wrt=(0, 1)).value_and_grad(x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(value, thin_arrays(x, y), rtol=1e-14)
    # ties of the maximum, of the array with itself, at the bounds of clip
    np.testing.assert_allclose(x_bar, [0.5 + 1.0 + 1.0, 1.0, 0.5 + 1.0 + 1.0], rtol=1e-14)
    np.testing.assert_array_equal(y_bar, [0.0, 0.0])


# ---- the second derivative -----------------------------------------------------------------------------------------


@both
def test_f86_finite_factors_are_not_suppressed(backend: str) -> None:
    """The derivative of `sin(x)**2` at 0 is 0, and its difference quotients do not vanish."""
    derived = differentiable(lambda x: np.sin(x) ** 2, backend=backend)
    assert derived.grad(0.0) == 0.0
    assert derived.grad(1e-5) == pytest.approx(2e-5, rel=1e-9)


# ---- where it comes from -------------------------------------------------------------------------------------------


def makes_nan(x: np.ndarray, k: float) -> Any:
    best = np.inf
    total = 0.0
    for i in range(x.size):
        y = np.sqrt(x[i])
        best = min(best, y)
        total += np.log(y) * k
    return total + best


@both
def test_f88_the_first_line_that_makes_a_nan_is_named(backend: str) -> None:
    derived = differentiable(makes_nan, backend=backend)
    start = makes_nan.__code__.co_firstlineno
    fine = derived.value_and_grad(np.array([1.0, 4.0]), 2.0)
    cases = [
        ([1.0, -1.0], 2.0, 4, "this makes a NaN in 'y'", "y = np.sqrt(x[i])"),
        ([1.0, 0.0], 2.0, 6, "this makes an infinity", "total += np.log(y) * k"),
    ]
    for x, k, line, reason, text in cases:
        for call in (derived, derived.grad, derived.vjp):
            with tg.debug_nans(), pytest.raises(NotFinite, match=reason) as caught:
                call(np.array(x), k)
            assert caught.value.span is not None
            assert caught.value.span.line == start + line
            assert caught.value.span.text() == text
    with tg.debug_nans():
        np.testing.assert_equal(derived.value_and_grad(np.array([1.0, 4.0]), 2.0), fine)
        derived.grad(np.array([NAN, 1.0]), 2.0)  # it was there before


def steep(x: float) -> Any:
    y = np.sqrt(x)
    return y * 3.0


@both
def test_the_gradient_alone(backend: str) -> None:
    derived = differentiable(steep, backend=backend)
    with tg.debug_nans():
        assert derived(np.float64(0.0)) == 0.0
        with pytest.raises(NotFinite, match="in the gradient: this makes an infinity") as caught:
            derived.grad(np.float64(0.0))
    assert caught.value.span is not None
    assert derived.grad(np.float64(0.0)) == INF


# ---- numbers of Python and of NumPy --------------------------------------------------------------------------------


def logarithm(x: float) -> float:
    return math.log(x) * 2.0


def root(x: float) -> float:
    return math.sqrt(x) * 2.0


def numpy_root(x: float) -> float:
    return np.sqrt(x) + np.log(x)


def inverse(x: float) -> Any:
    return 1.0 / x


def half_power(x: Any) -> Any:
    return x**0.5 * 2.0


def exponential(x: float) -> float:
    return math.exp(x)


@both
def test_f89_outside_of_the_domain(backend: str) -> None:
    raises_as_python(logarithm, -1.0, backend=backend, at="math.log(x)")
    raises_as_python(logarithm, 0.0, backend=backend, at="math.log(x)")
    raises_as_python(root, -1.0, backend=backend, at="math.sqrt(x)")
    raises_as_python(exponential, 1000.0, backend=backend, at="math.exp(x)")
    value, gradient = differentiable(numpy_root, backend=backend).value_and_grad(-1.0)
    assert np.isnan(value)
    assert np.isnan(gradient)


@both
def test_f89_powers_of_negative_numbers(backend: str) -> None:
    value, gradient = differentiable(half_power, backend=backend).value_and_grad(np.float64(-1.0))
    assert np.isnan(value)
    assert np.isnan(gradient)
    assert isinstance(half_power(-1.0), complex)
    with pytest.raises(BadArgument, match=r"negative number .* fractional power") as caught:
        differentiable(half_power, backend=backend).value_and_grad(-1.0)
    assert caught.value.span is not None


def parted(x: float) -> float:
    quotient, rest = divmod(1.0, x)
    return quotient * rest


@both
def test_f90_division_by_zero(backend: str) -> None:
    raises_as_python(inverse, 0.0, backend=backend, at="1.0 / x")
    raises_as_python(parted, 0.0, backend=backend, at="divmod(1.0, x)")
    value, gradient = differentiable(inverse, backend=backend).value_and_grad(np.float64(0.0))
    assert (value, gradient) == (INF, -INF)
    value, gradient = differentiable(lambda a: (1.0 / a).sum(), backend=backend).value_and_grad(np.array([0.0, 2.0]))
    assert value == INF
    np.testing.assert_array_equal(gradient, [-INF, -0.25])


def with_nan(x: np.ndarray) -> Any:
    return max(1.0, x[0]), max(x[0], 1.0), min(1.0, x[0]), min(x[0], 1.0), x.max(), np.argmax(x), np.fmax(x[0], 1.0)


@both
def test_f91_nan(backend: str) -> None:
    x = np.array([NAN, 2.0])
    np.testing.assert_array_equal(differentiable(with_nan, backend=backend)(x), with_nan(x))
    value, pullback = differentiable(with_nan, backend=backend).vjp(x)
    np.testing.assert_array_equal(value, with_nan(x))
    # Python's max keeps its first argument unless a later one is greater, and NaN never is
    for k, expected in enumerate([0.0, 1.0, 0.0, 1.0]):
        seeds = [0.0] * 7
        seeds[k] = 1.0
        np.testing.assert_array_equal(pullback(tuple(seeds)), [expected, 0.0])


def two_kinds(x: Any, y: Any) -> Any:
    flag = True
    if x < 0.0:
        flag = x * 2.0
    count = 2 if x > 0.0 else x
    return flag, count, max(1.0, y)


@pytest.mark.parametrize("x", [0.5, -0.5])
def test_numbers_of_two_kinds_are_the_wider_and_equal(x: float) -> None:
    value, _ = differentiable(two_kinds, wrt=(0, 1), backend="python").vjp(x, np.float64(0.5))
    assert value == two_kinds(x, np.float64(0.5))
    assert [type(part) for part in value] == [float, float, np.float64]


def test_perfect_correlations_have_a_curvature() -> None:
    """The largest values that there are, of the cosine of an angle: what rounding puts beyond them is not cut off."""
    x, v = np.array([-0.56, -0.14, -1.41]), np.array([0.3, -0.8, 0.5])
    function = differentiable(lambda x, y: np.corrcoef(x, y)[0, 1], backend="python")
    np.testing.assert_allclose(function.grad(x, x.copy()), 0.0, atol=1e-14)
    known, moving = x - x.mean(), v - v.mean()
    length = np.sum(known * known)
    across = moving - known * np.sum(moving * known) / length
    for factor in (1.0, -2.0):
        product = tg.hvp(function, (x, factor * x), (v, None))
        np.testing.assert_allclose(product, -np.sign(factor) * across / length, rtol=1e-9)
