"""Densities of scipy.stats in programs, compiled and not; probabilities that sum to 1; what of scipy is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, linalg, ndimage, signal, stats

import tapegen as tg
from tapegen.errors import NotDifferentiable
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


def rotated(x: np.ndarray) -> float:
    return linalg.hessenberg(np.outer(x, x) + np.eye(3)).sum()


def stacked(x: np.ndarray) -> float:
    return linalg.expm(np.stack([np.diag(x), 2.0 * np.diag(x)])).sum()


@pytest.mark.parametrize(
    ("func", "reason"),
    [(ranked, "depends on the values"), (rotated, "factors are not unique"), (stacked, "a stack of matrices")],
)
def test_what_is_refused_says_why(func: Any, reason: str) -> None:
    with pytest.raises(NotDifferentiable, match=reason) as caught:
        tg.grad(func)(X)
    assert caught.value.span is not None
    assert caught.value.advice
