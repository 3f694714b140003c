"""Functions of scipy in programs: densities, filters, spectra, functions of a matrix; what of it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, linalg, ndimage, signal, stats

import tapegen as tg
from tapegen.errors import BadArgument, NotDifferentiable
from tests.judged import both

X = np.array([0.3, 0.9, 1.7])
COUNTS = np.array([1, 0, 3])
LISTED = """beta cauchy chi2 expon gamma gennorm gumbel_l gumbel_r laplace logistic norm pareto t truncnorm uniform
vonmises wrapcauchy dirichlet multivariate_normal"""
DISCRETE = "bernoulli betabinom binom geom multinomial nbinom poisson"


def test_every_listed_family_has_a_log_density() -> None:
    from tapegen.rules import rule_of

    names = [(name, "logpdf") for name in LISTED.split()] + [(name, "logpmf") for name in DISCRETE.split()]
    assert len(names) == 26
    missing = [name for name, method in names if rule_of(getattr(getattr(stats, name), method)) is None]
    assert not missing


def likelihood(mu: float, sigma: float, df: float, x: np.ndarray) -> float:
    total = stats.norm.logpdf(x, loc=mu, scale=sigma).sum() + stats.t.logpdf(x[0], df, mu)
    for value in x:
        total += stats.gamma.logpdf(value, df, scale=sigma) + stats.gumbel_r.cdf(value)
    return total + stats.poisson.logpmf(3, sigma) + stats.norm.logpdf(-x[0])


@both
def test_in_a_program(backend: str) -> None:
    args = (0.2, 1.3, 2.5, X)
    derived = tg.differentiable(likelihood, wrt=(0, 1, 2, 3), backend=backend)
    assert derived(*args) == pytest.approx(likelihood(*args), rel=1e-14)
    tg.check_grads(likelihood, *args, modes=("forward", "reverse"), backend=backend)


def outside(x: np.ndarray) -> float:
    density = stats.expon.logpdf(x)
    return np.where(x > 0.0, density, 0.0).sum()


@both
def test_outside_of_the_support(backend: str) -> None:
    x = np.array([-1.0, 0.5])
    np.testing.assert_array_equal(tg.grad(outside, backend=backend)(x), [0.0, -1.0])


def with_sum_one(logits: np.ndarray) -> Any:
    share = np.exp(logits)
    return share / share.sum()


def multinomial(logits: np.ndarray) -> float:
    return stats.multinomial.logpmf(COUNTS, 4, with_sum_one(logits))


def dirichlet(logits: np.ndarray, alpha: np.ndarray) -> float:
    return stats.dirichlet.logpdf(with_sum_one(logits), alpha)


def test_probabilities_that_sum_to_one() -> None:
    logits = np.array([0.3, -0.4, 0.1])
    tg.check_grads(multinomial, logits, order=2, modes=("forward", "reverse"), backend="python")
    tg.check_grads(dirichlet, logits, X, modes=("forward", "reverse"), backend="python")


SECTIONS = np.array([[0.5, 0.2, 0.1, 1.0, -0.4, 0.3], [1.0, 0.3, 0.2, 1.0, 0.1, 0.2]])


def whole_filter(x: np.ndarray, low: float) -> float:
    y = signal.lfilter([1.0, low], [1.0, 0.5, low], x)
    return (y * y).sum() + signal.sosfilt(SECTIONS, x)[-1]


@both
def test_recursive_filters(backend: str) -> None:
    x = np.array([0.4, -1.0, 0.7, 1.3, 0.2])
    derived = tg.differentiable(whole_filter, backend=backend)
    assert derived(x, 0.3) == pytest.approx(whole_filter(x, 0.3), rel=1e-14)
    tg.check_grads(whole_filter, x, 0.3, modes=("forward", "reverse"), backend=backend)


def continued_filter(x: np.ndarray, held: np.ndarray) -> float:
    y, rest = signal.lfilter([0.3, 0.2], [1.0, -0.5, 0.1], x, zi=held)
    sums = integrate.cumulative_trapezoid(y, dx=0.5, initial=0)
    return np.sum(sums**2) + rest @ rest


def test_filters_that_go_on_and_sums_that_begin_with_zero() -> None:
    x, held = np.array([0.4, -1.0, 0.7, 1.3, 0.2]), np.array([0.3, -0.2])
    tg.check_grads(continued_filter, x, held, modes=("forward", "reverse"), backend="python")


def ranked(x: np.ndarray) -> float:
    return ndimage.median_filter(x, 3).sum()


def ordered(x: np.ndarray) -> float:
    return linalg.rsf2csf(np.diag(x), np.eye(3))[0].real.sum()


def stacked(x: np.ndarray) -> float:
    return linalg.expm(np.stack([np.diag(x), 2.0 * np.diag(x)])).sum()


@pytest.mark.parametrize(
    ("func", "reason"),
    [(ranked, "depends on the values"), (ordered, "LAPACK's choice"), (stacked, "a stack of matrices")],
)
def test_what_is_refused_says_why(func: Any, reason: str) -> None:
    with pytest.raises(NotDifferentiable, match=reason) as caught:
        tg.grad(func)(X)
    assert caught.value.span is not None
    assert caught.value.advice


def rotated(x: np.ndarray) -> float:
    h, q = linalg.hessenberg(np.outer(x, x) + np.diag(np.append(x[1:], 2.0)), calc_q=True)
    return np.sum(h[0] * q[2])


def logarithm(x: np.ndarray) -> Any:
    return np.sum(linalg.funm(np.outer(x, x) + np.diag(x), lambda w: w * np.log(w))[0])


@both
def test_a_matrix_that_is_not_positive_definite_raises(backend: str) -> None:
    solve = tg.differentiable(lambda a, b: np.sum(linalg.solve(a, b, assume_a="pos") ** 2), backend=backend)
    args = np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2)
    for call in (solve.python, solve, solve.value_and_grad):
        with pytest.raises(np.linalg.LinAlgError):
            call(*args)


def turned(x: np.ndarray) -> Any:
    return np.sum(linalg.funm(np.array([[0.0, x[0]], [-x[1], x[2]]]), np.sqrt)[0])


@pytest.mark.parametrize("func", [rotated, logarithm, turned])
def test_factors_and_functions_of_a_matrix(func: Any) -> None:
    tg.check_grads(func, X, modes=("forward", "reverse"), order=2, backend="python")


def falls_apart(x: np.ndarray) -> float:
    return linalg.hessenberg(np.diag(np.append(x, 2.0))).sum()


def twice_the_same(x: np.ndarray) -> Any:
    return linalg.funm(np.diag(x), np.exp).sum()


def not_real(x: np.ndarray) -> Any:
    return linalg.funm(np.diag(-x), np.sqrt).sum()


@pytest.mark.parametrize(
    ("func", "x", "reason"),
    [
        (falls_apart, X, "the factors are not unique"),
        (twice_the_same, np.array([1.0, 2.0, 1.0]), "eigenvalues are equal"),
        (not_real, X, "pass A.astype"),
    ],
)
def test_matrices_without_a_derivative(func: Any, x: np.ndarray, reason: str) -> None:
    with pytest.raises(BadArgument, match=reason):
        tg.grad(func, backend="python")(x)


SIGNAL = np.sin(np.arange(23.0)) + np.cos(np.arange(23.0) ** 2)


def with_named_window(x: np.ndarray, slope: float) -> Any:
    return signal.stft(slope * x, 1.5, ("tukey", 0.3), 6)[2]


def with_own_window(x: np.ndarray, slope: float) -> Any:
    own = signal.get_window("hann", 6) + slope
    _, spectra = signal.csd(x, x[::-1], 2.0, own)
    return np.sum(np.abs(signal.stft(x, 2.0, own, 6)[2]) ** 2) + np.sum(spectra.imag)


def there_and_back(x: np.ndarray, slope: float) -> Any:
    _, _, spectra = signal.stft(x, 2.0, nperseg=6)
    return signal.istft(spectra * (1.0 + slope), 2.0, nperseg=6)[1]


def of_complex_signals(x: np.ndarray, slope: float) -> Any:
    z = x + 1j * slope * x**2
    _, power = signal.welch(z, nperseg=6, return_onesided=False)
    return np.sum(np.log(power)) + signal.csd(x, x, nperseg=6)[1].real[2]


@pytest.mark.parametrize("func", [with_named_window, with_own_window, there_and_back, of_complex_signals])
def test_spectra(func: Any) -> None:
    tg.check_grads(func, SIGNAL, 0.3, modes=("forward", "reverse"), backend="python")


def varying_window(x: np.ndarray, part: float) -> Any:
    return signal.stft(x, window=("tukey", part), nperseg=6)[2].real.sum()


def test_a_window_by_name_is_known_before_the_program_runs() -> None:
    with pytest.raises(NotDifferentiable, match=r"'window' of scipy.signal.stft must be known"):
        tg.grad(varying_window, wrt=1, backend="python")(SIGNAL, 0.3)
