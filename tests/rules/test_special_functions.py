"""Functions of scipy.special: compiled through the functions that scipy exports; complex values; what is refused."""

from __future__ import annotations

import warnings
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special

import tapegen as tg
from tapegen.errors import MissingRule, TapegenError
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.rules import all_rules, rule_of
from tapegen.rules.external_functions import numbers
from tests.judged import both

LISTED = """beta betainc betaln digamma erf erfc erfinv expit gamma gammainc gammaincc gammaln gammasgn i0 i1 logit
logsumexp multigammaln polygamma erfcinv iv ive j0 j1 jn psi rgamma y0 y1 yn bernoulli boxcox boxcox1p comb dawsn entr
erfcx exp1 expi expn factorial fresnel hyp1f1 hyp2f1 i0e i1e kl_div log_ndtr log_softmax loggamma ndtr ndtri owens_t
poch rel_entr sici softmax spence sph_harm_y wofz xlog1py xlogy zeta"""
X = np.array([0.31, 0.47, 0.62])


def test_every_listed_function_has_a_rule_or_is_refused() -> None:
    known = {rule.func for rule in all_rules()}
    assert [name for name in LISTED.split() if getattr(special, name) not in known] == []


def faddeeva(x: Any, y: Any) -> Any:
    return np.sum(np.abs(special.wofz(x + 1j * y)) ** 2) + np.sum(special.wofz(x).imag)


def harmonic(theta: Any, phi: Any) -> Any:
    y = special.sph_harm_y(np.array([[1], [3], [4], [4]]), np.array([[0], [-2], [4], [-4]]), theta, phi)
    return np.sum(y.real * y.imag + y.real**2)


@pytest.mark.parametrize("func", [faddeeva, harmonic])
def test_functions_with_complex_values(func: Any) -> None:
    tg.check_grads(func, X, 1.0 + X[::-1], modes=("forward", "reverse"), order=2, backend="python")


@pytest.mark.parametrize(("n", "m"), [(2, 0), (3, 1), (5, -2), (4, 4)])
def test_spherical_harmonics_to_50_digits(n: int, m: int) -> None:
    def real_part(theta: float, phi: float) -> Any:
        return np.real(special.sph_harm_y(n, m, theta, phi))

    got = tg.grad(real_part, wrt=(0, 1), backend="python")(0.7, 2.3)
    with mpmath.workdps(50):
        slopes = [mpmath.diff(lambda a, b: mpmath.spherharm(n, m, a, b), (0.7, 2.3), k) for k in ((1, 0), (0, 1))]
    np.testing.assert_allclose(got, [float(slope.real) for slope in slopes], rtol=1e-14)


@pytest.mark.parametrize("order", [0, 1, 2, -1])
def test_spherical_harmonics_at_and_beyond_the_poles(order: int) -> None:
    def along(theta: float) -> Any:
        return special.sph_harm_y(3, order, theta, 0.4)

    for theta in (0.0, np.pi, -0.4, 3.9):
        _, slope = special.sph_harm_y(3, order, theta, 0.4, diff_n=1)
        _, got = tg.jvp(along, (theta,), (1.0,), backend="python")
        expected = slope[0] if 0.0 <= theta <= np.pi else across(order, theta)
        np.testing.assert_allclose(got, expected, atol=1e-8)


def across(order: int, theta: float) -> complex:
    """A difference of the function as scipy continues it."""
    step = 1e-6
    return (special.sph_harm_y(3, order, theta + step, 0.4) - special.sph_harm_y(3, order, theta - step, 0.4)) / (
        2 * step
    )


ORDERS = {
    special.gammainc: "x, 1.5",
    special.gammaincc: "x, 1.5",
    special.betainc: "x, 1.5, 0.5",
    special.jv: "x, 1.5",
    special.kve: "x, 1.5",
    special.hyp2f1: "x, 0.5, 1.5, 0.3",
}


@pytest.mark.parametrize("func", ORDERS, ids=lambda func: func.__name__)
def test_orders_and_parameters_without_a_derivative(func: Any) -> None:
    text = f"def of_order(x):\n    return special_function({ORDERS[func]})\n"
    with pytest.raises(MissingRule, match="no derivative with respect to"):
        tg.grad(function_from_text(text, {"special_function": func}))(0.7)


def loop_of_numbers(x: float, n: int) -> float:
    total = 0.0
    for k in range(n):
        a, b = special.sici(x + k)
        total = total + special.erf(x * k) * a + b * special.gamma(x + 1.0)
    return total


def of_arrays(x: np.ndarray) -> float:
    s, c = special.fresnel(x)
    inner = special.expit(special.digamma(x)) + special.betainc(1.7, 0.6, x) * special.polygamma(2, x)
    return (s * c * inner).sum() + special.logsumexp(special.jv(1.3, x[:, None]) * x)


@both
def test_compiled_and_not(backend: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for func, args in ((loop_of_numbers, (0.4, 3)), (of_arrays, (X,))):
            derived = tg.differentiable(func, backend=backend)
            assert derived(*args) == pytest.approx(func(*args), rel=1e-14)
            tg.check_grads(func, *args, wrt=0, modes=("forward", "reverse"), backend=backend)


def logistic(x: np.ndarray) -> Any:
    return special.expit(x).sum() + special.gammaln(x).sum()


@both
def test_float32(backend: str) -> None:
    x = X.astype(np.float32)
    value, gradient = tg.value_and_grad(logistic, backend=backend)(x)
    assert type(value) is type(logistic(x))
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, tg.grad(logistic, backend="python")(X), rtol=1e-6)


FIXED = {"yn": "2, ", "expn": "2, ", "polygamma": "1, ", "zeta": "2.5, ", "hyp2f1": "0.7, 0.4, 1.3, "}
FIXED |= {"hyp1f1": "0.7, 1.3, "}
FIXED |= {"betainc": "1.7, 0.6, ", **dict.fromkeys("gammainc gammaincc hyp0f1 jv yv iv ive kv kve".split(), "1.3, ")}


def every_function() -> Any:
    """A program that calls every function of numbers on an array."""
    lines = ["def of_all(x):", "    total = 0.0"]
    names: dict[str, Any] = {}
    for func, dtype in numbers().items():
        name = func.__name__
        rule = rule_of(func)
        if rule is None or rule.kind == "inactive" or dtype != "float64":
            continue
        names[f"special_{name}"] = func
        rest = "x" if name in FIXED else ", ".join(["x", "1.5 - x"][: getattr(func, "nin", 1)])
        lines.append(f"    total = total + (special_{name}({FIXED.get(name, '')}{rest}) * x).sum()")
    return function_from_text("\n".join([*lines, "    return total", ""]), names)


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_faddeeva_compiled(dtype: type) -> None:
    x, y = X.astype(dtype), (1.0 - 4.0 * X).astype(dtype)
    values = [tg.value_and_grad(faddeeva, wrt=(0, 1), backend=kind)(x, y) for kind in ("numba", "python")]
    (value, by_both), (expected, by_python) = values
    assert by_both[0].dtype == dtype
    assert value == pytest.approx(expected, rel=100 * float(np.finfo(dtype).eps))
    np.testing.assert_allclose(by_both, by_python, rtol=1000 * np.finfo(dtype).eps)


@pytest.mark.compiled
def test_every_function_compiled() -> None:
    func = every_function()
    value, gradient = tg.value_and_grad(func, backend="numba")(X)
    expected, by_python = tg.value_and_grad(func, backend="python")(X)
    assert value == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(gradient, by_python, rtol=1e-12)


@pytest.mark.whole
def test_every_function_to_second_order() -> None:
    tg.check_grads(every_function(), X, order=2, modes=("forward", "reverse"), backend="python", rtol=1e-5)


@pytest.mark.parametrize("point", [(-2.0, 3.0), (-2.0, 4.0), (0.0, 3.0), (-3.0, 0.5)])
def test_second_derivatives_of_poch_at_poles(point: tuple[float, float]) -> None:
    """Along z, where `poch` is a polynomial or crosses zero."""

    def along(z: float, m: float) -> Any:
        return special.poch(z, m)

    tg.check_grads(along, *point, wrt=0, modes=("forward", "reverse"), order=2, backend="python")


@pytest.mark.parametrize("point", [(5.0, 6.0), (3.0, 5.0), (5.0, -1.0), (4.5, 6.5), (4.5, -3.0)])
def test_second_derivatives_of_binom_at_poles(point: tuple[float, float]) -> None:
    def choices(n: float, k: float) -> Any:
        return special.binom(n, k)

    tg.check_grads(choices, *point, wrt=(0, 1), modes=("forward", "reverse"), order=2, backend="python")


def outside(n: np.ndarray, k: np.ndarray) -> Any:
    return np.sum(special.comb(n, k) * n) + np.sum(special.factorial(n - 3.0) * k)


@both
def test_counts_are_zero_outside_their_domain(backend: str) -> None:
    n, k = np.array([4.5, 4.5, -2.5, 4.5]), np.array([2.5, 5.2, 2.0, -1.2])
    value, gradients = tg.value_and_grad(outside, wrt=(0, 1), backend=backend)(n, k)
    assert value == pytest.approx(outside(n, k), rel=1e-14)
    step = 1e-6 * np.eye(4)
    by_n = [(outside(n + h, k) - outside(n - h, k)) / 2e-6 for h in step]
    by_k = [(outside(n, k + h) - outside(n, k - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(gradients, [by_n, by_k], rtol=1e-6)


def exact_comb(x: float) -> float:
    return special.comb(x, 2, exact=True)


def test_forms_that_a_rule_does_not_cover() -> None:
    with pytest.raises(TapegenError):
        tg.grad(exact_comb)(4.5)
